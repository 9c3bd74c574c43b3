#!/bin/sh
# An agent that does almost nothing: claude's stream, a plan, an edit, and the answer that the schema asks for. It can
# take some seconds for the first step (SEPTET_SCRIPTED_SECONDS) or for each one (SEPTET_SCRIPTED_STEP_SECONDS).
# It starts in a millisecond or two, so that what is measured around it is Septet's. On stderr it says when it began,
# and when it ends.
date +%s%N >&2
cat > /dev/null
[ -z "${SEPTET_SCRIPTED_STEP_SECONDS:-}" ] || sleep "$SEPTET_SCRIPTED_STEP_SECONDS"
session=00000000-0000-4000-8000-000000000000
case "$*" in
*'"ClassifyIssueAnswer"'*)
    # Says when it is told to end, so that the time until then can be taken.
    trap 'echo told >&2; exit 143' TERM
    echo working >&2
    sleep "${SEPTET_SCRIPTED_SECONDS:-0}" &
    wait $!
    trap - TERM
    answer='{"issue_class":"/chore"}'
    ;;
*'"BuildPlanAnswer"'*)
    mkdir -p specs && echo "Write done.txt." > specs/plan.md
    answer='{"plan_path":"specs/plan.md","summary":"One step."}'
    ;;
*'"FindPlanFileAnswer"'*) answer='{"plan_path":"specs/plan.md"}' ;;
*'"GenerateBranchAnswer"'*) answer='{"branch_name":"bench-'${PWD##*/}'"}' ;;
*'"ImplementPlanAnswer"'*)
    echo "It is done." > done.txt
    answer='{"success":true,"summary":"It is done.","key_changes_made":["done.txt"],"key_learnings":[]}'
    ;;
*'"CreateCommitAnswer"'*) answer='{"commit_message":"Tell that it is done"}' ;;
*) answer='{"title":"It is done","body":"A file tells so."}' ;;
esac
cat <<EVENTS
{"type":"system","subtype":"init","cwd":"$PWD","session_id":"$session","model":"none"}
{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I begin."}],"usage":{"input_tokens":1,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"$session"}
{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Done.","structured_output":$answer,"session_id":"$session","total_cost_usd":0,"usage":{"input_tokens":1,"output_tokens":1}}
EVENTS
date +%s%N >&2
