"""The `scripted` agent, for the demo and dry runs: it has claude's command line and output, but no model.

`septet-scripted-agent` really edits files, keeps its sessions on disk, and answers every step of a work order by
the words of the issue. The agent costs nothing and needs no network. It has to start fast, and therefore imports
neither the rest of Septet nor `typing` or `dataclasses`.

The agent reads `SEPTET_SCRIPTED_HOME` (sessions and counts; default `$HOME/.septet-scripted`) and
`SEPTET_SCRIPTED_SCENARIO`: the name of a built-in scenario, or the path of a JSON file.

In a pipeline, the agent plans a solution or carries out a solution, as the prompt requests. An issue names edits
with the words "In `path`, `old` should be `new`" and "Write `a line` into `path`".

A scenario describes failures. `steps` has a script for each step, or for `*`, which means all other steps. A list
has one script for each start of the step in a folder, and its last script repeats. Every key may be left out:

    {
      "steps": {
        "implement_plan": [
          {
            "malformed": "truncated",    the fault of the answer: `truncated` or `prose`
            "finalizer": …,              a script, or a list of scripts, for turns of the finalizer
            "refuse": "…",               the words of an answer which states that the step failed
            "put_over": {"key": …},      fields that replace fields of the answer, such as a false claim
            "edits": {"path": "content"},the edits in place of the agent's edits; `null` deletes the file
            "crash_after_edits": 1,      SIGKILL after so many edits; with fewer, before the answer
            "delay_seconds": 3           the seconds of work, with events all the time
          },
          {}
        ]
      }
    }

`tests/fakes/scripted_program.py` adds the mistakes that only tests need.
"""
