"""The `scripted` agent: claude's command line and stream, without a model. For demos and tests.

`septet-scripted-agent` really edits files, keeps its sessions on disk and answers every step of a work order on
any repository; what it does follows from the issue's own words. It costs nothing, needs no network, and starts
fast: so it imports neither the rest of Septet nor `typing` or `dataclasses`.

It reads `SEPTET_SCRIPTED_HOME` (sessions and counts; default `$HOME/.septet-scripted`) and
`SEPTET_SCRIPTED_SCENARIO` (or `--scenario`): the name of a built-in scenario, or the path of a JSON file.

Inside a pipeline it plans a solution and carries it out, as the prompt asks. An issue steers what is edited by the
words "In `path`, `old` should be `new`" and "Write `a line` into `path`"; a scenario says how long a step takes.

A scenario says what goes wrong. `steps` holds, for each step (or `*` for all the others), one script, or a list
with one for each start of that step in that folder; the last one repeats. Every key may be left out:

    {
      "model": "scripted-1",
      "cost_usd": 0.01,                  what each turn costs; 0 when absent
      "tokens": {"input_tokens": 9},     what each turn's usage says; counted from the text when absent
      "journal": "/outside/writes.jsonl",each write of a file is noted there, with path and SHA-256
      "steps": {
        "implement_plan": [
          {
            "answer": "…" or {…},        instead of its own answer
            "malformed": "truncated",    what is wrong with the answer: see `malformed.KINDS`
            "finalizer": …,              a script, or a list of them, for the turns that ask for the JSON alone
            "refuse": "…",               success: false or status: failed, with these words
            "put_over": {"key": …},      put over its own answer: a false claim, a solution with faults
            "edits": {"path": "content"},instead of its own edits; `null` deletes
            "crash_after_edits": 1,      SIGKILL to itself after so many edits, or before it answers
            "delay_seconds": 3,          works so long, with events all the time
            "wait_for": "/a/file",       works until there is such a file, with events all the time
            "idle_seconds": 3,           says nothing for so long
            "hang": true,                never ends
            "ignore_sigterm": true,
            "extra_turns": 20,           more turns before it continues, against --max-turns
            "api_error": 529,            the model API answers with this status
            "big_output_bytes": 1000000, a tool prints so much on one line
            "background_seconds": 30     a process that outlives the run and then writes `late.txt`
          },
          {}
        ]
      }
    }
"""
