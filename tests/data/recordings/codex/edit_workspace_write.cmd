# 
# wall=1.27s peak_rss_mb=149 killed=None after_kill_s=None
# git after: 'b4a3240 init\n?? hello.txt'
# left in session: '5601 Z    [git] <defunct>'
# stdin: None
env CODEX_HOME=/home/agent/codex-home STUB_API_KEY=dummy \
  codex exec --json -c model_providers.stub.base_url=http://127.0.0.1:8898/s/edit/edit_workspace_write-7d4d0d/v1 -s workspace-write Implement
