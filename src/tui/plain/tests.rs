//! Tests of line mode: typed input and the output that it results in.

use super::SIZE;
use super::app::LineApp;
use super::lines::{LineInput, Lines};
use super::writer::LineWriter;
use crate::protocol::*;
use crate::tui::interface::{ModelAccess, Start, TrustAnswer};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::tests::fixtures::*;
use crate::tui::update::Msg;
use std::os::fd::OwnedFd;

/// Session in line mode, and the position up to which the test has read its output.
struct Session {
    desk: LineApp<Vec<u8>>,
    read: usize,
    now: u64,
}

impl Session {
    fn new() -> Self {
        Self::with(start())
    }

    fn with(start: Start) -> Self {
        let desk = LineApp::new(UiModel::new(options(), None, SIZE), LineWriter::new(Vec::new(), false, true));
        let mut session = Self { desk, read: 0, now: 0 };
        session.desk.on_message(Msg::Start(Box::new(start)), 0).unwrap();
        session
    }

    fn tell(&mut self, kind: EventKind) {
        self.now += 10;
        let effects = self.desk.on_message(Msg::Event(Box::new(event(kind))), self.now).unwrap();
        assert!(effects.is_empty());
    }

    /// Delivers a fence after the dialog was printed, along with the incomplete line that was typed before that.
    fn fence(&mut self, typed: &str) {
        assert!(self.desk.take_fence(), "a question is asked");
        let effects = self.heard(LineInput::Fence(typed.to_owned()));
        assert!(effects.iter().all(|command| matches!(command, Command::SaveDraft { .. })), "{effects:?}");
    }

    fn heard(&mut self, heard: LineInput) -> Vec<Command> {
        let effects = self.effects(heard);
        effects.into_iter().filter_map(|effect| if let UiEffect::Send(command) = effect { Some(command) } else { None }).collect()
    }

    fn effects(&mut self, heard: LineInput) -> Vec<UiEffect> {
        self.now += 10;
        self.desk.on_line(heard, self.now).unwrap()
    }

    /// Types a line and returns the queries that result from it.
    fn asks(&mut self, line: &str) -> Vec<Query> {
        let effects = self.effects(LineInput::Line(line.to_owned()));
        effects.into_iter().filter_map(|effect| if let UiEffect::Ask(query) = effect { Some(query) } else { None }).collect()
    }

    fn types(&mut self, line: &str) -> Vec<Command> {
        self.heard(LineInput::Line(line.to_owned()))
    }

    /// Types a line and returns the commands for the host that result from it.
    fn types_for_host(&mut self, line: &str) -> Vec<HostCommand> {
        let effects = self.effects(LineInput::Line(line.to_owned()));
        let command = |effect| if let UiEffect::SendToHost(command) = effect { Some(command) } else { None };
        effects.into_iter().filter_map(command).collect()
    }

    /// Returns what has been printed since the last call.
    fn read(&mut self) -> String {
        let written = std::str::from_utf8(self.desk.paper.output()).unwrap();
        let new = written[self.read..].to_owned();
        self.read = written.len();
        new
    }
}

fn approved(commands: &[Command]) -> bool {
    commands.iter().any(|command| matches!(command, Command::Decide { decision: Decision::Approved, .. }))
}

fn decides(commands: &[Command]) -> bool {
    commands.iter().any(|command| matches!(command, Command::Decide { .. } | Command::Preview { .. }))
}

#[test]
fn responses_are_printed_in_whole_lines_with_the_speaker() {
    let mut session = Session::new();
    session.read();
    session.types("explain it");
    session.tell(started("explain it"));
    session.tell(text("It gree"));
    session.tell(text("ts.\nSec"));
    assert_eq!(session.read(), "aye: It greets.\n");
    session.tell(text("ond\u{1b}[2J line"));
    session.tell(answered(10, 2, None, None));
    assert_eq!(session.read(), "Second line\n");
}

#[test]
fn prompts_are_not_echoed_but_queued_ones_are_printed() {
    let mut session = Session::new();
    session.types("explain it");
    session.read();
    session.tell(started("explain it"));
    assert_eq!(session.read(), "");
    session.tell(started("a later one"));
    assert_eq!(session.read(), "You: a later one\n");
}

#[test]
fn diffs_label_each_line_as_added_or_removed() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(requested("call-a", "EditFile", "Edit src/main.rs"));
    session.read();
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    let said = session.read();
    for words in [
        "Approval 1 of 1: Edit src/main.rs\nlow risk, 1 hunk, +6 −5\nask: built-in, writes a file\n",
        "line 8: }\n",
        "removed line 10: fn greet(name: &str) -> String {\n",
        "added line 10: fn greet(name: &str) -> Result<String, GreetError> {\n",
        "added line 15:     Ok(format!(\"Hello, {name}! 你好 👋\"))\n",
        "Type one of these words, then Enter:\nallow: apply it, once\ndeny\nalways: always allow this…\n",
        "deny because REASON: deny and tell the model why\n",
        "\nlater: postpone the answer; /answer returns to it\n",
    ] {
        assert!(said.contains(words), "{words}\n---\n{said}");
    }
    session.fence("");
    assert_eq!(session.read(), "Answer (allow, deny, always, explain, deny because, later): ");
    assert!(approved(&session.types("allow")));
}

#[test]
fn a_renewed_approval_is_printed_and_takes_one_answer() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.read();
    let mut renewed = edit_approval("a");
    renewed.amendable.renewed = true;
    session.tell(EventKind::ApprovalRequested(renewed));
    let said = session.read();
    let changed = said.find("changed on disk since it was proposed").expect("why it is asked again");
    let asked = said.find("Approval 1 of 1: Edit src/main.rs").expect("the question");
    assert!(changed < asked && said.contains("added line 10:") && !said.contains("updated-diff"), "{said}");
    session.fence("");
    assert!(approved(&session.types("allow")));
}

#[test]
fn a_file_changed_during_an_approval_is_reported_and_updated_diff_renews_it() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    session.fence("");
    session.read();
    let told = |outdated| {
        let (approval_id, tool_call_id) = (ApprovalId::new("a"), crate::tui::tests::fixtures::call("call-a"));
        EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated }
    };
    session.tell(told(true));
    let said = session.read();
    assert!(said.contains("changed on disk since it was proposed") && !said.contains("added line"), "{said}");
    session.fence("");
    assert!(session.read().contains("Answer (updated-diff, deny, deny because, later): "));
    assert!(!approved(&session.types("allow")));
    session.read();
    session.tell(told(false));
    assert!(session.read().contains("added line 10:"), "it is as it was, and read out again");
    session.tell(told(true));
    session.fence("");
    session.read();
    let commands = session.types("updated-diff");
    assert!(
        commands.iter().any(|command| matches!(command, Command::Decide { decision: Decision::Renewed, .. })),
        "{commands:?}"
    );
}

#[test]
fn command_approvals_print_the_risky_parts_first_and_count_the_harmless_ones() {
    let mut session = Session::new();
    session.tell(started("test it"));
    session.read();
    session.tell(EventKind::ApprovalRequested(command_approval("a")));
    let said = session.read();
    for words in [
        "Run downloaded code from example.com\ncritical risk\n",
        "command: cargo test --workspace 2>&1 | tail -20 && rm -rf target/tmp &&",
        "part 3 of 5: rm -rf target/tmp\n  ask by built-in: deletes `target/tmp`; risk medium\n",
        "part 5 of 5: sh\n  reads the output of part 4\n  ask by built-in: runs downloaded code from `example.com`; risk critical\n",
        "always (not available): no rule can be saved: 3 deletes, ",
    ] {
        assert!(said.contains(words), "{words}\n---\n{said}");
    }
    let place = |words: &str| said.find(words).unwrap_or_else(|| panic!("{words}\n---\n{said}"));
    let order = ["part 5 of 5", "part 4 of 5", "part 3 of 5", "2 harmless parts", "command: "].map(place);
    assert!(order.is_sorted() && !said.contains("part 1 of 5"), "{said}");
}

#[test]
fn the_progress_of_applying_changes_is_printed_after_two_seconds_and_then_every_ten() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(requested("a", "RunCommand", "$ make"));
    session.read();
    let mut printed = Vec::new();
    for elapsed_ms in (1_000..=25_000).step_by(100) {
        let progress = EffectsProgress { stage: EffectsStage::Applying, done: elapsed_ms, total: Some(30_000), elapsed_ms };
        session.tell(EventKind::EffectsProgress { tool_call_id: CallId::new("a"), progress });
        printed.extend(session.read().lines().map(str::to_owned));
    }
    let line = |done| format!("Tool: $ make: Applying {done} of 30,000 files");
    assert_eq!(printed, ["2,000", "12,000", "22,000"].map(line));
    // A repeated preview has its own clock.
    session.tell(EventKind::PreviewStarted { approval_id: None, tool_call_id: CallId::new("a") });
    session.read();
    let progress = EffectsProgress { stage: EffectsStage::Applying, done: 3_000, total: Some(30_000), elapsed_ms: 3_000 };
    session.tell(EventKind::EffectsProgress { tool_call_id: CallId::new("a"), progress });
    assert_eq!(session.read().trim_end(), line("3,000"));
}

#[test]
fn progress_shows_the_last_line_of_a_command_that_still_runs() {
    let mut session = Session::new();
    session.tell(started("change it"));
    for (id, line) in [("a", "from make"), ("b", "from cargo")] {
        session.tell(requested(id, "RunCommand", "$ run it"));
        session.tell(EventKind::ToolOutputChunk { tool_call_id: call(id), text: format!("{line}\n") });
    }
    session.desk.print_progress(session.now).unwrap();
    assert!(session.read().contains("Last line printed: from cargo"));
    session.tell(completed("b", ToolStatus::Succeeded, "from cargo\n", None));
    session.read();
    session.desk.print_progress(session.now).unwrap();
    assert!(session.read().contains("Last line printed: from make"));
}

#[test]
fn only_a_whole_word_typed_after_the_approval_appears_decides() {
    for line in ["", " ", "a", "1", "d", "yes please", "allow it", "allowed", "Allow please", "alles", "ok", "allow;", "y\u{8}"] {
        let mut session = Session::new();
        session.tell(started("change it"));
        session.tell(EventKind::ApprovalRequested(edit_approval("a")));
        session.fence("");
        assert!(!decides(&session.types(line)), "{line:?}");
        assert_eq!(session.desk.model.dialogs.len(), 1, "{line:?}");
    }
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    // The line was in the terminal's line editor when the dialog appeared, and was completed before the user could have
    // read the dialog.
    let sent = session.types("allow");
    assert!(!decides(&sent) && sent.contains(&Command::Prompt { text: "allow".to_owned() }), "it waits as a message: {sent:?}");
    session.fence("");
    assert!(approved(&session.types("ALLOW ")));
}

#[test]
fn y_and_n_decide_approvals_of_low_and_medium_risk_only() {
    let sent = |approval, line: &str| {
        let mut session = Session::new();
        session.tell(started("change it"));
        session.tell(EventKind::ApprovalRequested(approval));
        session.fence("");
        session.types(line)
    };
    let with_risk = |risk_level, critical| Approval { risk_level, critical, ..edit_approval("a") };
    for line in ["y", "yes", "Y"] {
        assert!(approved(&sent(with_risk(Risk::Low, false), line)), "{line}");
        assert!(approved(&sent(with_risk(Risk::Medium, false), line)), "{line}");
    }
    for line in ["n", "no", "No"] {
        let sent = sent(with_risk(Risk::Medium, false), line);
        assert!(decides(&sent) && !approved(&sent), "{line}: {sent:?}");
    }
    for line in ["y", "yes", "n", "no"] {
        assert!(!decides(&sent(with_risk(Risk::High, false), line)), "{line}");
        assert!(!decides(&sent(with_risk(Risk::Low, true), line)), "{line}");
    }
}

#[test]
fn text_typed_before_an_approval_appeared_is_not_part_of_the_answer() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    session.read();
    session.fence("allo");
    assert!(session.read().starts_with("Typed before the approval or question appeared; saved for your next message: allo\n"));
    assert!(!decides(&session.types("w")));
    assert!(approved(&session.types("allow")));
    session.read();
    session.types("/draft");
    let said = session.read();
    assert!(said.contains("Draft:\nallow\n"), "both pieces are kept as one: {said}");
}

#[test]
fn pasted_text_decides_nothing_and_goes_to_the_draft() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    session.fence("");
    assert!(!decides(&session.heard(LineInput::Pasted("allow\nallow".to_owned()))));
    let sent = session.types("/send");
    assert!(sent.contains(&Command::Prompt { text: "allow\nallow".to_owned() }), "{sent:?}");
}

#[test]
fn an_invalid_answer_is_reported_saved_as_draft_and_not_joined_to_the_next_line() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    session.fence("");
    session.read();
    let sent = session.types("aprove");
    assert!(sent.contains(&Command::SaveDraft { text: "aprove".to_owned() }), "it is not lost: {sent:?}");
    assert_eq!(
        session.read(),
        "Not a valid answer; nothing was decided. Expected one of: allow, deny, always, explain, deny because, later.\n\
         Your line is in the draft now: /send sends it as a message, /drop discards it.\n\
         Answer (allow, deny, always, explain, deny because, later): "
    );
    assert!(approved(&session.types("allow")));
    let sent = session.types("and run the tests");
    assert!(sent.contains(&Command::Prompt { text: "and run the tests".to_owned() }), "{sent:?}");
    let sent = session.types("/send");
    assert!(sent.contains(&Command::Prompt { text: "aprove".to_owned() }), "{sent:?}");
    session.types("/drop");
    session.read();
    session.types("/send");
    assert!(session.read().contains("The draft is empty."));
}

#[test]
fn a_denial_accepts_a_reason_and_a_rule_needs_a_second_answer() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    session.fence("");
    assert!(!decides(&session.types("deny because")));
    let sent = session.types("deny because it is the wrong File");
    let reason = Some("it is the wrong File".to_owned());
    let no = Command::Decide { approval_id: ApprovalId::new("a"), decision: Decision::denied(reason) };
    assert_eq!(sent, [no]);
    session.tell(EventKind::ApprovalRequested(edit_approval("b")));
    session.fence("");
    session.read();
    assert!(!decides(&session.types("always")));
    let said = session.read();
    assert!(said.contains("Always allow this") && said.contains("project: in this project\n"), "{said}");
    assert!(!said.contains("policy.toml"), "the files are behind `diff`: {said}");
    assert!(!decides(&session.types("session")), "the choice of a rule is another question");
    session.fence("");
    let sent = session.types("session");
    assert!(matches!(sent[..], [Command::Decide { decision: Decision::ApprovedAlways { .. }, .. }]), "{sent:?}");
}

#[test]
fn approvals_appear_one_by_one_and_postponed_ones_return() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    session.tell(EventKind::ApprovalRequested(command_approval("b")));
    session.fence("");
    assert!(approved(&session.types("allow")));
    session.read();
    assert!(!decides(&session.types("allow")), "the second was not read out before this was typed");
    session.fence("");
    session.types("later");
    assert!(session.read().contains("Postponed. Type"));
    assert!(!decides(&session.types("allow")));
    session.types("/answer");
    assert!(session.read().contains("Approval 1 of 1: Run downloaded code"));
    session.fence("");
    assert!(approved(&session.types("allow")));
}

#[test]
fn questions_about_trust_and_interrupted_calls_have_their_own_answers() {
    let (trust, mut answered) = trust(&["AGENTS.md (instructions)"]);
    let mut session = Session::with(Start { trust: Some(trust), ..start() });
    let said = session.read();
    assert!(said.contains("Question: Trust the project ~/src/greeter?") && said.contains("trust: apply all of this"), "{said}");
    session.fence("");
    let effects = session.desk.on_line(LineInput::Line("read-only".to_owned()), 5).unwrap();
    for effect in effects {
        if let UiEffect::Trust(trust, answer) = effect {
            trust.answer.send(answer).unwrap();
        }
    }
    assert_eq!(answered.try_recv(), Ok(TrustAnswer::ReadOnly));
    session.tell(interrupted("c", "$ cargo test"));
    session.fence("");
    let sent = session.types("skip");
    assert_eq!(sent, [Command::Resolve { tool_call_id: call("c"), resolution: Resolution::Skip }]);
}

#[test]
fn rewind_takes_a_number_and_then_a_scope() {
    let mut session = Session::new();
    session.read();
    assert!(session.types("/rewind").contains(&Command::ListRewindPoints));
    session.tell(EventKind::RewindPointsListed { points: rewind_points(), can_redo: false });
    assert!(session.read().contains("Prompt 3: Run the tests (no files; ran cargo test)"));
    let sent = session.types("/rewind 2");
    assert!(sent.iter().any(|command| matches!(command, Command::PlanRewind { .. })), "{sent:?}");
    session.tell(EventKind::RewindPlanned(rewind_plan()));
    let said = session.read();
    assert!(said.contains("Rewind to before prompt 2") && said.contains("both: conversation and files"), "{said}");
    session.fence("");
    let sent = session.types("files");
    assert!(matches!(sent[..], [Command::Rewind { scope: RewindScope::Files, .. }]), "{sent:?}");
}

#[test]
fn ctrl_c_stops_the_task_and_pressed_again_quits() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(text("I am"));
    let sends = |effects: Vec<UiEffect>| effects.into_iter().map(|effect| format!("{effect:?}")).collect::<Vec<_>>().join(" ");
    assert!(sends(session.desk.interrupt(100).unwrap()).contains("Cancel"));
    assert!(sends(session.desk.interrupt(900).unwrap()).contains("Exit(Quit)"));
}

#[test]
fn status_is_printed_on_demand_and_output_never_moves_the_cursor() {
    let mut session = Session::new();
    session.tell(started("test it"));
    session.tell(requested("c", "RunCommand", "$ cargo test"));
    session.tell(EventKind::ToolStarted {
        tool_call_id: call("c"),
        rule: "user:12".to_owned(),
        summary: None,
        effects: None,
        note: None,
    });
    session.tell(EventKind::ToolOutputChunk { tool_call_id: call("c"), text: "one\rtwo\u{1b}[1Athree\n".to_owned() });
    session.read();
    session.types("/status");
    let said = session.read();
    assert!(said.contains("Model: sonnet-5") && said.contains("Task: Running cargo test"), "{said}");
    session.tell(completed("c", ToolStatus::Succeeded, "Exit code: 0\n--- stdout ---\nall\u{7} good\n", None));
    assert_eq!(session.read(), "Tool: $ cargo test done, 2.4 s\nall␇ good\nTool: exit code 0\n");
    let all = std::str::from_utf8(session.desk.paper.output()).unwrap();
    assert!(all.chars().all(|letter| letter == '\n' || !letter.is_control()), "{all}");
}

#[test]
fn sessions_and_branches_are_listed_and_selected_by_name_or_number() {
    let mut session = Session::new();
    session.tell(started("x"));
    session.tell(EventKind::TaskCancelled { step_count: 1 });
    session.read();
    let asked = session.asks("/resume");
    assert!(matches!(asked.last(), Some(Query::LookUp(HostRequest::Sessions { .. }))), "{asked:?}");
    let listed = |words: &str, sessions| HostResponse::Sessions {
        words: words.to_owned(),
        all: false,
        archived: false,
        sessions,
        here: 3,
        everywhere: 57,
        looks_on: false,
    };
    session.tell(EventKind::LookedUp(listed("", listed_sessions())));
    let said = session.read();
    assert!(
        said.contains("a1b2c3d4: Validate the name") && said.contains("; waiting for you; 2 h; branch main; $0.42"),
        "{said}"
    );
    assert!(said.contains("Type /resume NAME") && !said.contains(['\u{1b}', '│', '▲']), "{said}");
    session.types("/resume nothing like it");
    session.tell(EventKind::LookedUp(listed("nothing like it", Vec::new())));
    assert!(session.read().contains("No session in this project contains: nothing like it"));
    assert!(matches!(session.asks("/tree").last(), Some(Query::LookUp(HostRequest::Branches { .. }))));
    let branch = Branch {
        session_id: SessionId::new("b1b2c3d4"),
        records: Some(7),
        depth: 1,
        title: Some("Port the lexer".to_owned()),
        prompts: 2,
        after: Some(1),
        age: "3 d".to_owned(),
        archived: false,
    };
    session.tell(EventKind::LookedUp(HostResponse::Branches { branches: vec![branch] }));
    let said = session.read();
    assert!(said.contains("1: Port the lexer; undone after prompt 1; 2 prompts; 3 d"), "{said}");
    session.types("/tree 2");
    assert!(session.read().contains("No branch 2 in the list"));
    let forked = session.asks("/tree 1");
    assert!(
        matches!(forked.last(), Some(Query::LookUp(HostRequest::Fork { until: ForkUntil::Records { count: 7 }, .. }))),
        "{forked:?}"
    );
}

#[test]
fn keys_and_commands_are_searched_by_word() {
    let mut session = Session::new();
    session.read();
    session.types("/keys ctrl+g");
    assert_eq!(session.read(), "Typing [composer]:\nctrl+g: edit the draft in your editor ($VISUAL, $EDITOR)\nYou: ");
    session.types("/help undone");
    let said = session.read();
    assert!(said.contains("nothing") || said.contains("No matches for: undone"), "{said}");
    session.types("/help /undo");
    let said = session.read();
    assert!(said.contains("/undo: undo the last prompt") && !said.contains("ctrl+g"), "{said}");
    session.types("/keys");
    let said = session.read();
    assert!(said.contains("Approvals and questions [question]:") && said.contains("Custom keys:"), "{said}");
}

#[test]
fn without_an_api_key_the_message_stays_in_the_draft() {
    let access = ModelAccess::NoKey { message: "No key here.".to_owned(), model: None };
    let mut session = Session::with(Start { model_access: access, ..start() });
    session.read();
    let sent = session.types("explain it");
    assert!(!sent.iter().any(|command| matches!(command, Command::Prompt { .. })), "{sent:?}");
    assert!(session.read().contains("not sent"));
    assert_eq!(session.desk.model.composer.text(), "explain it");
}

/// Returns the two ends of a pseudoterminal.
fn terminal() -> (OwnedFd, OwnedFd) {
    let pair = nix::pty::openpty(None, None).unwrap();
    (pair.master, pair.slave)
}

fn write(end: &OwnedFd, text: &str) {
    assert_eq!(nix::unistd::write(end, text.as_bytes()), Ok(text.len()));
}

#[test]
fn the_fence_removes_unfinished_input_from_the_line_buffer_of_the_terminal() {
    let (person, line) = terminal();
    let (mut lines, mut heard) = Lines::start(line.try_clone().unwrap(), Some(line)).unwrap();
    write(&person, "one\n");
    assert_eq!(heard.blocking_recv(), Some(LineInput::Line("one".to_owned())));
    write(&person, "allo");
    lines.fence();
    assert_eq!(heard.blocking_recv(), Some(LineInput::Fence("allo".to_owned())));
    write(&person, "w\n");
    assert_eq!(heard.blocking_recv(), Some(LineInput::Line("w".to_owned())));
    lines.fence();
    assert_eq!(heard.blocking_recv(), Some(LineInput::Fence(String::new())));
    write(&person, "allow\n");
    assert_eq!(heard.blocking_recv(), Some(LineInput::Line("allow".to_owned())));
    write(&person, "\x04");
    assert_eq!(heard.blocking_recv(), Some(LineInput::Closed(String::new())));
}

#[test]
fn on_a_pipe_lines_are_read_as_typed_and_the_end_is_reported() {
    let (read, write_end) = nix::unistd::pipe().unwrap();
    let (_lines, mut heard) = Lines::start(read, None).unwrap();
    write(&write_end, "one\r\ntwo\nthree");
    drop(write_end);
    let mut all = Vec::new();
    while let Some(one) = heard.blocking_recv() {
        all.push(one);
    }
    let line = |text: &str| LineInput::Line(text.to_owned());
    assert_eq!(all, [line("one"), line("two"), LineInput::Closed("three".to_owned())]);
}

#[test]
fn server_forms_are_filled_in_line_by_line_and_sent_by_a_word() {
    let mut session = Session::new();
    session.tell(EventKind::ElicitationRequested(form("e")));
    session.fence("");
    let written = session.read();
    assert!(written.contains("Question: tickets (MCP server) asks for input"), "{written}");
    assert!(written.contains("send (not available)") && !written.contains('\u{1b}'), "{written}");
    assert!(session.types("send").is_empty());
    assert!(session.types("fill").is_empty());
    session.fence("");
    assert!(session.read().contains("Field 2 of 7: mail, an email address, required"));
    assert!(session.types("/etc").is_empty());
    assert!(session.read().contains("Not accepted: not an email address"));
    for line in ["ada@example.org", "", "yes", "", "red"] {
        assert!(session.types(line).is_empty(), "{line}");
        session.fence("");
    }
    let written = session.read();
    assert!(written.contains("\n1. Red\n2. Green\n") && written.contains("This looks like a secret"), "{written}");
    assert!(session.types("").is_empty());
    session.fence("");
    assert!(session.read().contains("mail (required): ada@example.org"));
    let sent = session.types_for_host("send");
    let Some(HostCommand::AnswerElicitation { elicitation_id, answer: ElicitationAnswer::Accept { content } }) = sent.first()
    else {
        panic!("{sent:?}")
    };
    assert_eq!((elicitation_id.as_str(), content.len()), ("e", 5));
}

#[test]
fn mcp_servers_are_listed_and_reconnected() {
    let mut session = Session::new();
    session.tell(EventKind::ServersChanged { servers: servers() });
    session.types("/mcp");
    let written = session.read();
    assert!(written.contains("search (MCP): not reachable; its tool is unavailable until it responds"), "{written}");
    assert!(
        written.contains("docs (MCP server) · ready") && written.contains("connection: npx -y @example/docs-server"),
        "{written}"
    );
    session.types("/mcp list");
    assert!(session.read().contains("docs (MCP server) · ready"));
    let sent = session.types_for_host("/mcp reconnect docs");
    assert!(sent.iter().any(|command| matches!(command, HostCommand::ReconnectServer { name } if name == "docs")), "{sent:?}");
}

#[test]
fn a_denial_with_a_reason_is_accepted_while_the_details_are_shown() {
    let mut session = Session::new();
    session.tell(started("change it"));
    session.tell(EventKind::ApprovalRequested(edit_approval("a")));
    session.fence("");
    session.types("explain");
    let said = session.read();
    assert!(said.contains("Details and rules") && !said.contains("key N"), "{said}");
    session.fence("");
    assert!(!decides(&session.types("allow")), "the approval may have changed since it was printed");
    let sent = session.types("deny because it is wrong");
    let denied = Decision::denied(Some("it is wrong".to_owned()));
    assert!(sent.contains(&Command::Decide { approval_id: ApprovalId::new("a"), decision: denied }), "{sent:?}");
}
