#!/bin/bash
# An agent that says something every second in claude's stream, for as long as it is let, and starts no process for it.
cat > /dev/null
session=00000000-0000-4000-8000-000000000000
exec {nap}<> <(:)
echo '{"type":"system","subtype":"init","cwd":"'"$PWD"'","session_id":"'$session'","model":"none"}'
for ((at = 0; at < ${SEPTET_SCRIPTED_SECONDS:-0}; at++)); do
    echo '{"type":"assistant","message":{"id":"m'$at'","role":"assistant","content":[{"type":"text","text":"I look at the next file."}],"usage":{"input_tokens":1,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"'$session'"}'
    read -r -t 1 -u "$nap"
done
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Done.","structured_output":{"issue_class":"/chore"},"session_id":"'$session'","total_cost_usd":0,"usage":{"input_tokens":1,"output_tokens":1}}'
