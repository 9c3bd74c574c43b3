"""The `scripted` agent, for the demo and dry runs: it has claude's command line and stream, but no model.

`septet-scripted-agent` really edits files, keeps its sessions on disk and answers every step of a work order on
any repository, by the issue's own words. The agent costs nothing, needs no network, and has to start fast: so the
program imports neither the rest of Septet nor `typing` or `dataclasses`.

The agent reads `SEPTET_SCRIPTED_HOME` (sessions and counts; default `$HOME/.septet-scripted`) and
`SEPTET_SCRIPTED_SCENARIO`: the name of a built-in scenario, or the path of a JSON file.

Inside a pipeline the agent plans a solution and executes the solution, as the prompt requests. An issue steers the
edits by the words "In `path`, `old` should be `new`" and "Write `a line` into `path`".

A scenario is a list of failures. `steps` holds, for each step (or `*` for all other steps), one script, or a list
with a script for each start of the step in a folder; the last script repeats. Every key may be left out:

    {
      "steps": {
        "implement_plan": [
          {
            "malformed": "truncated",    the fault of the answer: `truncated` or `prose`
            "finalizer": …,              a script, or a list of them, for turns that request the JSON alone
            "refuse": "…",               success: false or status: failed, with these words
            "put_over": {"key": …},      replaces fields of its answer: a false claim, a solution with faults
            "edits": {"path": "content"},instead of its own edits; `null` deletes
            "crash_after_edits": 1,      SIGKILL to itself after so many edits, or before the answer
            "delay_seconds": 3           the seconds of work, with events all the time
          },
          {}
        ]
      }
    }

`tests/fakes/scripted_program.py` adds the mistakes that only tests need.
"""
