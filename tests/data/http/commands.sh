curl http://localhost:8888/health
WORK_ORDER_ID=$(curl -X POST http://localhost:8888/agent-work-orders \
  -H "Content-Type: application/json" \
  -d '{
    "repository_url": "https://github.com/Wirasm/dylan.git",
    "sandbox_type": "git_branch",
    "workflow_type": "agent_workflow_plan",
    "github_issue_number": "1"
  }' | jq -r '.agent_work_order_id')
echo "Work Order ID: $WORK_ORDER_ID"
sleep 30
curl http://localhost:8888/agent-work-orders/$WORK_ORDER_ID | jq
curl http://localhost:8888/agent-work-orders/$WORK_ORDER_ID/steps | jq '.steps[] | {step: .step, agent: .agent_name, success: .success, output: .output[:50]}'
ls -la /tmp/agent-work-orders/*/
cat /tmp/agent-work-orders/$WORK_ORDER_ID/outputs/*.jsonl | grep '"result"'

curl http://localhost:8888/health | jq
# Create test work order
WORK_ORDER=$(curl -X POST http://localhost:8888/agent-work-orders \
-H "Content-Type: application/json" \
-d '{"repository_url":"https://github.com/Wirasm/dylan.git","sandbox_type":"git_branch","workflow_type":"agent_workflow_plan","github_issue_number":"1"}' \
| jq -r '.agent_work_order_id')
echo "Work Order: $WORK_ORDER"
sleep 20
# Check execution
curl http://localhost:8888/agent-work-orders/$WORK_ORDER | jq
curl http://localhost:8888/agent-work-orders/$WORK_ORDER/steps | jq '.steps[] | {step, agent_name, success, output}'
# Verify logs
ls /tmp/agent-work-orders/*/outputs/
cat /tmp/agent-work-orders/*/outputs/*.jsonl | grep '"result"'
