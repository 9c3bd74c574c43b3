# written from a run of claude 2.1.329 whose model answered with stop_reason "refusal" each time
claude -p --output-format stream-json --verbose --dangerously-skip-permissions
