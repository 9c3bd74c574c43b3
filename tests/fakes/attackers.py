"""The attackers, their gains with all protections, and the tests of the gains: the table of `docs/attacks.md`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Gain:
    who: str
    attempt: str
    gain: str
    test: str
    """The file below `tests/`, and the test in it."""


_AGENT, _AUTHOR, _COMMENTER, _PAGE = "an agent", "an issue's author", "a commenter", "a web page"
_USER, _REPOSITORY, _FORGE = "another user of the machine", "the repository", "the forge, or who answers for it"
_TRACKER, _MODEL, _SERVER, _SUPPLY = (
    "a tracker (Linear)",
    "the model's server",
    "Temporal's server",
    "the supply chain",
)

GAINS = (
    Gain(_AGENT, "read keys, other work and the user's files", "nothing; its own CLI's login, if that is a subscription", "escape/test_routes.py::test_a_route_finds_no_canary"),
    Gain(_AGENT, "send the work away", "only to the model's hosts and those in `SEPTET_GUEST_HOSTS`", "escape/test_network_routes.py::test_a_way_out_finds_no_canary"),
    Gain(_AGENT, "use the model's key for itself", "turns of its own while it runs, with its CLI's requests; budgets count their tokens", "unit/agents/test_model_requests.py::test_what_no_cli_asks_its_model_is_refused_and_says_what_opens_it"),
    Gain(_AGENT, "have the model's server repeat the real key", "nothing: keys are inserted only where servers do not repeat them", "unit/agents/test_model_port.py::test_what_a_server_may_tell_its_client_never_has_the_key"),
    Gain(_AGENT, "write less usage, or costs below zero, into its CLI's stream", "up to twice the tokens and 20,000 in each run where the model's key stays outside, otherwise anything; limits of minutes hold", "unit/agents/test_forged_usage.py::test_no_event_gives_back_what_others_have_used"),
    Gain(_AGENT, "… so that the model has said more", "no tokens beyond that, and no dollars, unless the stream names no tokens or no price", "unit/agents/test_model_requests.py::test_a_model_that_says_much_more_than_its_cli_is_believed"),
    Gain(_AGENT, "write more usage than there was", "its project's budget looks used up, until a person raises it", "unit/agents/test_forged_usage.py::test_what_a_stream_says_too_much_is_no_number_without_end"),
    Gain(_AGENT, "use up the machine", "what it can in the two seconds between two looks; where it has a control group, a quarter above its limits", "escape/test_resources.py::test_the_kernel_holds_a_guests_memory_where_it_has_a_control_group"),
    Gain(_AGENT, "leave something that runs later, outside", "nothing, once its step has ended", "escape/test_git_routes.py::test_a_persons_git_runs_nothing_of_a_guests"),
    Gain(_AGENT, "get more approved than the plan that a person has read", "nothing: other files of the planner do not go on", "escape/test_plan_routes.py::test_an_implementor_gets_the_plan_alone"),
    Gain(_AGENT, "have CI or other agents run its changes", "a person's yes, or nothing; scripts that a workflow calls do not wait", "escape/test_git_routes.py::test_what_ci_and_agents_act_on_waits_and_would_be_pushed"),
    Gain(_AGENT, "speak in the worker's name", "plain words: nothing that mentions, closes, hides or starts anything", "escape/test_outgoing_routes.py::test_what_a_guest_says_acts_only_where_nothing_cleans_it"),
    Gain(_AGENT, "put a backdoor into the code", "whatever a review of the pull request does not see", "escape/test_leaving_routes.py::test_honest_commits_may_leave"),
    Gain(_AGENT, "… where `read_outgoing` is on", "what the second agent does not see either", "workflows/test_read_outgoing.py::test_a_reader_without_an_answer_stops_the_push"),
    Gain(_AUTHOR, "give the agent orders in the issue's text", "all that an agent has; the text chooses no agent, command, path or setting", "acceptance/test_follow.py::test_the_words_of_checks_reviews_and_conflicts_choose_nothing"),
    Gain(_AUTHOR, "edit the issue after somebody who may push has set the label", "nothing: the work waits for a person, except with Gitea and `SEPTET_ON_UNKNOWN_EDITS=take`", "unit/forges/test_issue_requests.py::test_a_strangers_new_body_waits_for_a_person"),
    Gain(_AUTHOR, "set the label itself, without the right to push", "nothing", "unit/forges/test_issue_requests.py::test_a_label_of_somebody_who_may_not_push_starts_nothing"),
    Gain(_AUTHOR, "… in Linear, as a guest, through an app or from outside", "nothing; members count, also on a text that others have edited", "unit/trackers/test_linear.py::test_a_label_counts_where_a_member_has_set_it"),
    Gain(_AUTHOR, "hide words from people that an agent reads", "nothing that no page shows; pages show much that nobody reads", "escape/test_incoming_routes.py::test_words_that_no_page_shows_reach_an_agent_only_uncleaned"),
    Gain(_COMMENTER, "write orders under the issue before the work begins", "nothing without the right to push, or being its author", "unit/forges/test_issue_for_agents.py::test_comments_of_others_than_writers_and_the_author_are_counted"),
    Gain(_COMMENTER, "start, approve or stop work without the right to push", "nothing", "acceptance/test_intake.py::test_who_may_write_is_obeyed_and_answered_once"),
    Gain(_COMMENTER, "give an agent that follows a pull request orders", "nothing without that right", "unit/forges/test_conversation.py::test_only_words_of_those_who_may_write_wait"),
    Gain(_COMMENTER, "send the delivery of a webhook itself", "nothing", "acceptance/test_intake.py::test_what_is_not_signed_is_not_read"),
    Gain(_PAGE, "reach the page, the HTTP API or Temporal from the user's browser", "nothing", "acceptance/test_doors.py::test_a_page_of_another_site_starts_and_sees_nothing"),
    Gain(_USER, "read keys, work or the token on disk", "nothing", "acceptance/test_doors.py::test_another_user_reads_no_key_and_no_work"),
    Gain(_USER, "have a runner or a supervisor start a program", "nothing", "unit/agents/test_runner.py::test_another_user_gets_no_supervisor_of_a_runner"),
    Gain(_USER, "lure the user's browser, for the page's key", "nothing; the key, if it learns the page's secret name", "acceptance/test_doors.py::test_another_port_of_this_machine_gets_no_key_of_the_page"),
    Gain(_USER, "speak to Temporal at its port", "start, approve and cancel work, and read its texts; with sealing and `SEPTET_SEAL_REQUIRED`, only what the lines on Temporal's server say", "workflows/test_sealed.py::test_unsealed_updates_and_signals_are_refused"),
    Gain(_REPOSITORY, "loosen the sandbox, keys or budgets by its settings", "nothing", "unit/repository_settings/test_repository_settings.py::test_a_repository_loosens_neither_sandbox_nor_keys_nor_budgets"),
    Gain(_REPOSITORY, "run code as a check or at set-up", "what an agent has, without its CLI's login", "escape/test_kinds.py::test_a_guest_of_each_kind_finds_no_key"),
    Gain(_REPOSITORY, "fill the machine with a tree that unfolds", "nothing", "unit/git_workspace/test_tree_bomb.py::test_a_tree_that_unfolds_without_end_is_refused_by_the_name_of_its_limit"),
    Gain(_FORGE, "get the worker's key with a certificate that does not fit", "nothing", "unit/git_workspace/test_https_origin.py::test_a_certificate_that_does_not_fit_gets_no_key"),
    Gain(_FORGE, "lead git, with the key, to another host or to plain HTTP", "nothing", "unit/git_workspace/test_https_origin.py::test_an_origin_that_leads_elsewhere_takes_no_key_along"),
    Gain(_FORGE, "answer without end", "nothing", "unit/forges/test_answer_bounds.py::test_an_answer_takes_no_more_memory_than_its_bound"),
    Gain(_FORGE, "answer about something else", "nothing: number and repository are compared; the rights and the code that it tells are believed", "unit/forges/test_contract.py::test_an_issue_that_has_moved_is_told_with_its_new_address"),
    Gain(_TRACKER, "send a delivery with another secret, changed, or of two minutes ago", "nothing", "acceptance/test_linear.py::test_what_is_not_linear_s_word_of_this_minute_is_refused"),
    Gain(_TRACKER, "send one again within its minute", "nothing", "acceptance/test_linear.py::test_an_issue_is_taken_once_also_when_temporal_has_forgotten"),
    Gain(_MODEL, "steer the agent by what it answers", "all that an agent has", "escape/test_kinds.py::test_a_guest_of_each_kind_finds_no_key"),
    Gain(_MODEL, "say that more was used than was", "a project's budget looks used up, until a person raises it", "unit/agents/test_model_requests.py::test_a_model_that_says_much_more_than_its_cli_is_believed"),
    Gain(_SERVER, "read texts, in its database or its web UI", "all of them; with sealing, ids, names, times and search attributes", "acceptance/test_sealed.py::test_a_server_without_the_keys_reads_no_word"),
    Gain(_SERVER, "tell workers something without a key", "all that it likes; with `SEPTET_SEAL_REQUIRED`, nothing but an end or a delay", "workflows/test_sealed.py::test_an_unsealed_result_is_not_believed"),
    Gain(_SERVER, "send a sealed answer again that it has seen", "nothing in another work order or step; an answer counts again in its own step, as do a start, update or signal", "workflows/test_sealed.py::test_a_sealed_answer_counts_in_its_own_work_order_and_step_alone"),
    Gain(_SUPPLY, "change a package of Septet's after its release", "nothing: all are pinned by their hashes", "unit/packaging/test_lock.py::test_every_package_is_pinned_with_hashes"),
    Gain(_SUPPLY, "move a tag of an action or an image", "an action: nothing. An image: what it runs, until `make pin-images` has pinned it", "unit/deploy/test_pinned_images.py::test_no_action_is_named_by_a_branch"),
    Gain(_SUPPLY, "change a CLI or its model", "all that an agent has, and the login or key that the CLI is given", "escape/test_kinds.py::test_a_guest_of_each_kind_finds_no_key"),
    Gain(_SUPPLY, "use the rights of a container", "none but a service's own", "unit/deploy/test_compose.py::test_a_service_gains_no_right_and_has_limits"),
)  # fmt: skip


def attackers_table() -> str:
    lines, before = (
        ["| who | tries to | and gains | as the test shows (below `tests/`) |", "| --- | --- | --- | --- |"],
        "",
    )
    for each in GAINS:
        who = each.who if each.who != before else "…"
        lines.append(f"| {who} | {each.attempt} | {each.gain} | `{each.test}` |")
        before = each.who
    return "\n".join(lines) + "\n"
