"""The `scripted` agent: claude's command line and stream, without a model. For the demo and dry runs.

`septet-scripted-agent` really edits files, keeps its sessions on disk and answers every step of a work order on
any repository; what it does follows from the issue's own words. It costs nothing, needs no network, and starts
fast: so it imports neither the rest of Septet nor `typing` or `dataclasses`.

It reads `SEPTET_SCRIPTED_HOME` (sessions and counts; default `$HOME/.septet-scripted`) and
`SEPTET_SCRIPTED_SCENARIO`: the name of a built-in scenario, or the path of a JSON file.

Inside a pipeline it plans a solution and carries it out, as the prompt asks. An issue steers what is edited by the
words "In `path`, `old` should be `new`" and "Write `a line` into `path`".

A scenario says what goes wrong. `steps` holds, for each step (or `*` for all the others), one script, or a list
with one for each start of that step in that folder; the last one repeats. Every key may be left out:

    {
      "steps": {
        "implement_plan": [
          {
            "malformed": "truncated",    what is wrong with the answer: `truncated` or `prose`
            "finalizer": …,              a script, or a list of them, for turns that request the JSON alone
            "refuse": "…",               success: false or status: failed, with these words
            "put_over": {"key": …},      put over its own answer: a false claim, a solution with faults
            "edits": {"path": "content"},instead of its own edits; `null` deletes
            "crash_after_edits": 1,      SIGKILL to itself after so many edits, or before it answers
            "delay_seconds": 3           works so long, with events all the time
          },
          {}
        ]
      }
    }

`tests/fakes/scripted_program.py` adds the mistakes that only tests need.
"""
