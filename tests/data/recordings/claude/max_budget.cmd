# 
# killed=None after_kill_s=None
# git after: '?? loop.txt'
# stdin: '# build_plan\nLoop'
env ANTHROPIC_API_KEY=dummy ANTHROPIC_BASE_URL=http://127.0.0.1:8899 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1 DISABLE_AUTOUPDATER=1 IS_SANDBOX=1 \
  claude -p --output-format stream-json --verbose --dangerously-skip-permissions --max-budget-usd 0.006
