//! Tests of the turn machine. `tests/cases/turn/*.txt` contain inputs (`> …`) and the effects expected in response.
//! `UPDATE=1` rewrites the effects.

use super::super::retry::Backoff;
use super::call_batch::CallBatch;
use super::rule_files::RuleGrant;
use super::*;
use crate::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use crate::ports::{
    Completion, Delta, LayerEnd, LayerRun, ModelError, ModelRequest, Plan, PlanAmendments, Record, RecoveredCalls,
    RecoveredState, SavedTail,
};
use crate::protocol::{
    Action, Amendable, Amendment, Approval, ApprovalId, AssumedPrice, Budget, BudgetLimit, BudgetScope, BudgetUnit,
    CallArguments, CallHooks, CallId, ChangeStatus, ChangedFile, ChangedFiles, Command, CountedEffects, Decision,
    DiscardedEffect, EffectKind, EffectPart, Effects, EffectsProgress, EffectsStage, Effort, ErrorCode, EventHooks, EventKind,
    Failure, FailureKind, FileDiffs, FileEffect, Goal, GrantChoice, GrantScope, HookDecision, HookEvent, HookEvents, HookRun,
    Hunk, HunkChoice, Message, Mode, ModelFacts, Part, Place, PreviewOffer, Price, Proposal, Resolution, RewindScope,
    RewindTarget, Role, SandboxAccess, SandboxTier, StopReason, Target, TaskId, ToolCall, ToolError, ToolResult, Usage,
};
use jiff::Timestamp;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Policy that allows reads and `true-by-rule`, requires approval of writes and other commands, and blocks `sudo`.
const POLICY: &str = r#"
schema_version = 1
[capabilities."File.Read"]
allowed_paths = ["${workspace}"]
[capabilities."File.Write"]
allowed_paths = ["${workspace}"]
requires_approval = true
[capabilities."Shell.Exec"]
requires_approval = true
blocked_commands = ["sudo"]
[[capabilities."Shell.Exec".rules]]
command = ["true-by-rule"]
decision = "allow"
[capabilities."Network.Http"]
requires_approval = true
"#;

/// Price of the summary model.
const SMALL_PRICE: Price = Price { input: 0.1, output: 0.0, cache_read: 0.1, cache_write: 0.1 };

mod copies;
mod goals;
mod plan;
mod prefixes;
mod random;
mod show;
mod spending;
mod states;

use show::{show, tag};

struct Sim {
    machine: TurnMachine,
    approver: Approver,
    records: Vec<Record>,
    now: Timestamp,
    calls: Vec<ToolCall>,
    max_steps: u32,
    limits: Vec<BudgetSetting>,
    window: u64,
    /// Ticket of the most recently started preview.
    ticket: u64,
    approval_timeout: Option<Duration>,
    /// Whether the cases show the states of the session and its task.
    states: bool,
    hooks: HookEvents,
    changes: states::Changes,
}

/// Returns a modified file that has no diff.
fn changed_file(path: &str, added: u64) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        status: ChangeStatus::Modified,
        diff: FileDiffs::default(),
        added,
        removed: 0,
        by: Vec::new(),
        note: None,
    }
}

fn machine(approver: Approver, max_steps: u32) -> TurnMachine {
    machine_with(approver, max_steps, Vec::new(), None)
}

fn machine_with(
    approver: Approver,
    max_steps: u32,
    limits: Vec<BudgetSetting>,
    approval_timeout: Option<Duration>,
) -> TurnMachine {
    let price = Price { input: 1.0, output: 0.0, cache_read: 1.0, cache_write: 1.0 };
    let options = AgentOptions {
        model: ModelFacts::for_test("test/model", 100_000, Some(price)),
        effort: None,
        max_output_tokens: 1_000,
        max_steps,
        limits,
        prices: PriceOptions::default(),
        fallback_models: Vec::new(),
        summary_model: None,
        model_before: None,
        effort_for_this_run: false,
        approvals: ApprovalOptions { approver, agent: None, timeout: approval_timeout },
        backoff: Backoff::default(),
        system: "be good".into(),
        tools: OfferedTools { definitions: Vec::new().into(), names: Vec::new() },
        sandbox: "NONE".to_owned(),
        laxest: Mode::AutoEdit,
        chosen_mode: None,
        hooks: HookEvents::default(),
        compact_at_percent: Some(80),
        service_session: None,
    };
    TurnMachine::new(enforcer(POLICY), options)
}

fn enforcer(policy: &str) -> Enforcer {
    let bundle = Bundle::parse(policy, "test").unwrap();
    let context = Context {
        roots: vec![PathBuf::from("/w")],
        home: PathBuf::from("/home/me"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    Enforcer::new(vec![Layer::new(Scope::User, bundle)], context)
}

fn bare() -> SandboxStatus {
    SandboxStatus { tier: SandboxTier::Bare, words: String::new(), missing: None }
}

/// Parses the result of a run in a layer, such as `%a.rs,-b.rs`, `%killed`, `%@example.com` or `%:target`: changed
/// files, deletions, how the run ended, blocked access, and build output.
fn layer_effects(mark: &str) -> Option<Box<Effects>> {
    let (ended, output, digest) = ("exit 0".to_owned(), "said".to_owned(), "d1".to_owned());
    let mut effects = Effects { ended, output, digest, ..Effects::default() };
    for part in mark.strip_prefix('%')?.split(',').filter(|part| !part.is_empty()) {
        let file = |path: &str, kind: EffectKind| FileEffect { path: path.to_owned(), kind, notes: Vec::new() };
        match part.split_at(1) {
            ("-", path) => effects.files.push(file(path, EffectKind::Deleted { bytes: 1, binary: false })),
            ("@", name) => effects.denied.push(outside(name)),
            (":", path) => {
                effects.counted.push(CountedEffects {
                    path: path.to_owned(),
                    created: 1,
                    changed: 0,
                    deleted: 0,
                    bytes: 1,
                    direct: false,
                });
            }
            _ if part == "killed" => "killed after 300 s".clone_into(&mut effects.ended),
            _ => effects.files.push(file(part, EffectKind::Created { bytes: 1, binary: false })),
        }
    }
    Some(Box::new(effects))
}

/// Parses `network` or a host name.
fn outside(name: &str) -> SandboxAccess {
    match name {
        "network" => SandboxAccess::Network,
        host => SandboxAccess::Host { host: host.to_owned(), port: 443 },
    }
}

/// Returns the action that a policy judges for this access, or `None` if the access is not to a host.
fn fetched(opened: &SandboxAccess) -> Option<Action> {
    let SandboxAccess::Host { host, port } = opened else { return None };
    Some(Action::Fetch { url: format!("https://{host}:{port}/"), method: "GET".to_owned() })
}

/// Parses `-example.com WORDS` into the access that was blocked during a run, and the run's output.
fn denied_in(output: &str) -> (Vec<SandboxAccess>, &str) {
    match output.strip_prefix('-') {
        Some(rest) => {
            let (name, output) = rest.split_once(' ').unwrap();
            (vec![outside(name)], output)
        }
        None => (Vec::new(), output),
    }
}

/// Replaces `~30~` with 30 tokens of text. Displayed text is converted back.
fn filled(line: &str) -> String {
    let mut pieces = line.split('~');
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.parse::<usize>() {
            Ok(tokens) => filled.push_str(&"zzzz".repeat(tokens)),
            Err(_) => filled.push_str(piece),
        }
    }
    filled
}

fn folded(line: &str) -> String {
    let mut folded = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("zzzzzzzz") {
        let length = rest[start..].bytes().take_while(|byte| *byte == b'z').count();
        let _ = write!(folded, "{}~{}~", &rest[..start], length / 4);
        rest = &rest[start + length..];
    }
    folded + rest
}

/// Returns the kind of a message that was not written by the user.
fn kind_of(message: &Message) -> &'static str {
    let kinds = [("[Earlier", "Truncated-"), ("[Summary", "Summary-"), ("[This is not from the user", "Question-")];
    let text = message.text();
    kinds.iter().find(|(start, _)| text.starts_with(start)).map_or("", |(_, kind)| kind)
}

/// Parses the resume policy, followed by `found c1 done`, `found c1 not-done`, `found c1 partly WORDS` and `printed
/// c1 WORDS`, separated by `;`.
fn known(how: &str) -> (&str, RecoveredCalls) {
    let mut known = RecoveredCalls::default();
    let mut parts = how.split(';').map(str::trim);
    let how = parts.next().unwrap_or_default();
    for part in parts {
        let (what, rest) = part.split_once(' ').unwrap();
        let (id, words) = rest.split_once(' ').unwrap();
        let id = CallId::new(id);
        match (what, words.split_once(' ').unwrap_or((words, ""))) {
            ("found", ("done", left)) => {
                let left = left.split_whitespace().map(PathBuf::from).collect();
                known.found.insert(id, RecoveredState::Done { left });
            }
            ("found", ("not-done", _)) => drop(
                known
                    .found
                    .insert(id, RecoveredState::NotDone { left: words.split_whitespace().skip(1).map(PathBuf::from).collect() }),
            ),
            ("found", ("partly", words)) => drop(known.found.insert(id, RecoveredState::Partly { words: words.to_owned() })),
            ("printed", _) => drop(known.tails.insert(id, SavedTail { text: words.to_owned(), ran_ms: 12_000 })),
            other => panic!("known {other:?}"),
        }
    }
    (how, known)
}

impl Sim {
    fn new(approver: Approver, max_steps: u32) -> Self {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let machine = machine(approver, max_steps);
        Self {
            machine,
            approver,
            records: Vec::new(),
            now,
            calls: Vec::new(),
            max_steps,
            limits: Vec::new(),
            window: 100_000,
            ticket: 0,
            approval_timeout: None,
            states: false,
            hooks: HookEvents::default(),
            changes: states::Changes::default(),
        }
    }

    fn at(&self) -> InputTime {
        InputTime { now: self.now, jitter: 1.0 }
    }

    fn play(&mut self, line: &str) -> Vec<Effect> {
        let line = &filled(line);
        self.now += jiff::SignedDuration::from_millis(100);
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let input = match verb {
            // Reports by the host about the session (its start, its end, and whether it can be saved), and the step
            // limit for later processes.
            "steps" => {
                self.max_steps = rest.parse().unwrap();
                return Vec::new();
            }
            "begin" => return self.machine.begin_session(),
            "closed" => return self.machine.end_session(rest != "unsaved"),
            "stalled" => return self.stalled(true),
            "saved" => return self.stalled(false),
            "prompt" => Input::Command(Command::Prompt { text: rest.to_owned() }),
            "own" => Input::Command(Command::Shell { line: rest.to_owned(), shared: true }),
            "own-quietly" => Input::Command(Command::Shell { line: rest.to_owned(), shared: false }),
            "steer" => Input::Command(Command::Steer { text: rest.to_owned() }),
            "edit" => {
                let (id, text) = rest.split_once(' ').unwrap_or((rest, ""));
                Input::Command(Command::EditWaiting { id: id.parse().unwrap(), text: text.to_owned() })
            }
            "goal" => Input::Command(Command::SetGoal { goal: Goal::parse(rest).unwrap() }),
            "goal-check" => Input::Command(Command::SetGoalCheck { check: rest.to_owned() }),
            "goal-stop" => Input::Command(Command::StopGoal),
            // Changed files, each as `PATH:ADDED`, or `unknown` if they could not be listed.
            "changed" => {
                let file = |item: &str| {
                    let (path, added) = item.split_once(':').unwrap();
                    changed_file(path, added.parse().unwrap())
                };
                let files = || rest.split(' ').filter(|item| !item.is_empty()).map(file).collect();
                let changes = (rest != "unknown").then(|| ChangedFiles { files: files(), ..ChangedFiles::default() });
                Input::ChangesListed { ticket: self.ticket, changes, scripts: String::new() }
            }
            "retry" => Input::Command(Command::RetryNow),
            "text" => Input::Delta(Delta::Text(rest.to_owned())),
            "thinking" => Input::Delta(Delta::Reasoning(rest.to_owned())),
            "calling" => Input::Delta(Delta::ToolCallProgress { tool_name: rest.to_owned(), bytes: 20 }),
            "answer" => Input::Delta(Delta::Completed(self.completion(rest))),
            "fail" => {
                let (kind, message) = rest.split_once(' ').unwrap();
                let kind: FailureKind = serde_json::from_value(kind.into()).unwrap();
                Input::ModelFailed(ModelError { failure: Failure::new(kind, message, "hint"), retry_after: None, usage: None })
            }
            // A failed request that used 50 input and 5 output tokens.
            "wasted" => {
                let (kind, message) = rest.split_once(' ').unwrap();
                let kind: FailureKind = serde_json::from_value(kind.into()).unwrap();
                let usage = Some(Usage { input_tokens: 50, output_tokens: 5, ..Usage::default() });
                Input::ModelFailed(ModelError { failure: Failure::new(kind, message, "hint"), retry_after: None, usage })
            }
            // A response for which the provider reported no usage.
            "uncounted" => {
                let completion = self.completion(rest);
                Input::Delta(Delta::Completed(Completion { usage: Usage::default(), ..completion }))
            }
            "budget" => Input::Command(Command::SetBudget { limit: limit_of(rest, ' ') }),
            "budgets" => Input::Command(Command::ShowBudget),
            "price" => Input::Command(Command::AssumePrice { price: AssumedPrice::parse(rest).unwrap() }),
            "model" => Input::Command(Command::SetModel { name: rest.to_owned() }),
            "effort" => Input::Command(Command::SetEffort { effort: Effort::from_name(rest) }),
            // `other/model 5`: a model and its price per million tokens. Without a number, the price is unknown.
            "opened" => {
                let (name, price) = rest.split_once(' ').map_or((rest, None), |(name, price)| (name, price.parse().ok()));
                let price = price.map(|input| Price { input, output: 0.0, cache_read: input, cache_write: input });
                Input::ModelOpened(Ok(ModelFacts::for_test(name, 50_000, price)))
            }
            "known-for-summaries" => {
                Input::SummaryModelKnown(ModelFacts::for_test("small/model", rest.parse().unwrap(), Some(SMALL_PRICE)))
            }
            "unopened" => Input::ModelOpened(Err(Failure::new(FailureKind::Authentication, rest, "hint"))),
            "limited" => Input::ModelFailed(ModelError {
                failure: Failure::new(FailureKind::RateLimited, "slow down", "wait"),
                retry_after: Some(Duration::from_secs(rest.parse().unwrap())),
                usage: None,
            }),
            "planned" => Input::Planned(rest.split("; ").map(|item| self.planned(item)).collect()),
            // Outcomes of pre-call hooks: `0=deny why; 1=rewrite {"path":"m"}; 2=none`.
            "hooked" => Input::CallsHooked(rest.split("; ").map(call_hooks).collect()),
            // Outcome of an event's hooks: `block why`, `context text` or nothing.
            "event-hooked" => {
                let by_hook = |text: &str| ("h".to_owned(), text.to_owned());
                let outcome = EventHooks {
                    block: rest.strip_prefix("block ").map(by_hook),
                    context: rest.strip_prefix("context ").map(by_hook).into_iter().collect(),
                    notices: Vec::new(),
                };
                Input::Hooked { ticket: self.ticket, outcome }
            }
            "preview" => Input::Command(Command::Preview { approval_id: ApprovalId::new(rest) }),
            // `0 with EFFECTS exec LINE` or `0 failed WORDS`. With `late`, the input has an old ticket.
            "previewed" => {
                let (index, what) = rest.split_once(' ').unwrap();
                let (ticket, what) = match what.strip_prefix("late ") {
                    Some(what) => (0, what),
                    None => (self.ticket, what),
                };
                let outcome = match what.strip_prefix("failed ") {
                    Some(why) => Err(ToolError::new(ErrorCode::ToolExecutionFailed, why)),
                    None => self.plan(&format!("{index}={what}")).1,
                };
                Input::Previewed { index: index.parse().unwrap(), ticket, outcome }
            }
            "background" => Input::Command(Command::Background { tool_call_id: None }),
            "stop" => Input::Command(Command::Stop { id: rest.to_owned() }),
            "output" => Input::ToolOutput { index: 0, text: rest.to_owned() },
            // `c1 2 of 3`.
            "progress" => {
                let (id, counts) = rest.split_once(' ').unwrap();
                let (done, total) = counts.split_once(" of ").unwrap();
                let (done, total) = (done.parse().unwrap(), Some(total.parse().unwrap()));
                let progress = EffectsProgress { stage: EffectsStage::Applying, done, total, elapsed_ms: 0 };
                Input::EffectsProgress { tool_call_id: CallId::new(id), progress }
            }
            "finished" => {
                let (index, output) = rest.split_once(' ').unwrap();
                let index: usize = index.parse().unwrap();
                let call = &self.calls[index];
                let (denied, output) = denied_in(output);
                let result = match output.strip_prefix("conflict ") {
                    None => ToolResult::success(call.tool_call_id.clone(), call.tool_name.clone(), output),
                    Some(why) => {
                        let error = ToolError::new(ErrorCode::Conflict, why);
                        ToolResult::from_error(call.tool_call_id.clone(), call.tool_name.clone(), error)
                    }
                };
                let result = ToolResult { denied, output_text: result.output_text.replace('␤', "\n"), ..result };
                Input::ToolFinished { index, result, latency_ms: 7 }
            }
            "decide" => {
                let mut words = rest.splitn(3, ' ');
                let approval_id = ApprovalId::new(words.next().unwrap());
                let decision = match words.next().unwrap() {
                    "yes" => Decision::Approved,
                    "always" => Decision::ApprovedAlways { remember: GrantChoice::default() },
                    "here" => Decision::ApprovedAlways {
                        remember: GrantChoice { scope: GrantScope::Project, ..GrantChoice::default() },
                    },
                    // `TL`: the first hunk is selected and the second is not.
                    "hunks" => {
                        let choice = |letter| if letter == 'T' { HunkChoice::Taken } else { HunkChoice::Left };
                        let hunks = words.next().unwrap().chars().map(choice).collect();
                        Decision::Amended { amendment: Amendment::Hunks { hunks } }
                    }
                    // The digest of the effects, and the paths to discard.
                    "effects" => {
                        let mut words = words.next().unwrap().split(' ');
                        let digest = words.next().unwrap().to_owned();
                        let discarded = words.map(|path| DiscardedEffect { path: path.to_owned(), hunks: Vec::new() }).collect();
                        Decision::Amended { amendment: Amendment::Effects { digest, discarded } }
                    }
                    "anew" => Decision::Renewed,
                    "line" => {
                        let line = words.next().unwrap().to_owned();
                        Decision::Amended { amendment: Amendment::Command { line } }
                    }
                    "first" => {
                        let line = words.next().unwrap().to_owned();
                        Decision::Amended { amendment: Amendment::First { line } }
                    }
                    "outside" => Decision::Amended { amendment: Amendment::Unsandboxed },
                    "no" => Decision::denied(words.next().map(ToOwned::to_owned)),
                    other => panic!("decision {other}"),
                };
                Input::Command(Command::Decide { approval_id, decision })
            }
            "outdated" => Input::Outdated { approval_id: ApprovalId::new(rest), outdated: true },
            "current" => Input::Outdated { approval_id: ApprovalId::new(rest), outdated: false },
            "resolve" => {
                let (id, how) = rest.split_once(' ').unwrap();
                let resolution = match how {
                    "rerun" => Resolution::Rerun,
                    "skip" => Resolution::Skip,
                    "tell" => Resolution::TellModel,
                    other => panic!("resolution {other}"),
                };
                Input::Command(Command::Resolve { tool_call_id: CallId::new(id), resolution })
            }
            // The plans of the mentioned files, followed by their content.
            "mentioned" => {
                let plans = rest.split("; ").map(|item| self.plan(item).1).collect();
                Input::MentionsPlanned { ticket: self.ticket, plans }
            }
            "read-along" => {
                let read = |text: &str| ToolResult::success(CallId::new("mention_0"), "ReadFile", text);
                Input::MentionsRead { ticket: self.ticket, results: rest.split("; ").map(read).collect() }
            }
            "compact" => Input::Command(Command::Compact { focus: Some(rest.to_owned()) }),
            "undo" | "undo-files" | "undo-talk" | "redo" => {
                let scope = match verb {
                    "undo-files" => RewindScope::Files,
                    "undo-talk" => RewindScope::Conversation,
                    _ => RewindScope::Both,
                };
                let target = if verb == "redo" { RewindTarget::Redo } else { RewindTarget::Last };
                Input::Command(Command::Rewind { target, scope, overwrite: Vec::new() })
            }
            "put-back" => {
                let mut numbers = rest.split(' ').map(|number| number.parse().unwrap());
                let number = numbers.next().unwrap();
                let restored = u64::from(numbers.next().unwrap_or(1));
                Input::FilesRewound { number, outcome: Ok(crate::ports::FileRewindResult { restored, kept: Vec::new() }) }
            }
            "undo-compaction" => Input::Command(Command::UndoCompaction),
            "context" => Input::Command(Command::ShowContext),
            "retry-now" => Input::Command(Command::RetryNow),
            "cancel" => Input::Command(Command::Cancel),
            "kill" => Input::Command(Command::Kill),
            "continue" => Input::Command(Command::Continue),
            "quit" => Input::Command(Command::Quit),
            "mode" => Input::Command(Command::SetMode { mode: serde_json::from_value(rest.into()).unwrap() }),
            "reload" => Input::Command(Command::ReloadPolicy),
            // Lines of a complete policy file, or nothing for the initial policy.
            "policy" => Input::PolicyChanged(Box::new(PolicyChange {
                enforcer: enforcer(&if rest.is_empty() {
                    POLICY.to_owned()
                } else {
                    format!("schema_version = 1\n{}", rest.replace("; ", "\n"))
                }),
                tools: OfferedTools { definitions: Vec::new().into(), names: Vec::new() },
                sandbox: "NONE".to_owned(),
                sandbox_status: bare(),
                name: "test".to_owned(),
                message: Some("policy reloaded".to_owned()),
            })),
            // Result of saving the most recent rule.
            "kept" => {
                let grant = RuleGrant { rules: Vec::new(), scope: GrantScope::Project, names: Vec::new(), directory: None };
                Input::RuleFiles(RuleFileResult::Saved(grant, Err(rest.to_owned())))
            }
            "woken" => Input::Woken { ticket: rest.parse().unwrap() },
            "wait" => {
                self.now += jiff::SignedDuration::from_millis(rest.parse().unwrap());
                return Vec::new();
            }
            "unreadable" => {
                let last = self.records.iter().rposition(|record| tag(record, "record") == rest).unwrap();
                self.records[last] = Record::Unreadable;
                return Vec::new();
            }
            "crash" => return self.crash(rest),
            other => panic!("unknown input {other}"),
        };
        let at = self.at();
        self.machine.handle(input, at)
    }

    /// Kills the process. A new process continues the journal.
    fn crash(&mut self, how: &str) -> Vec<Effect> {
        // `settled c1` at the end: recovery determined the outcome of this call.
        let (how, id) = how.split_once("settled ").map_or((how, None), |(how, id)| (how.trim(), Some(id)));
        let settled =
            id.map(|id| ToolResult::success(CallId::new(id), "RunCommand", "finished afterwards")).into_iter().collect();
        let (how, known) = known(how);
        let unfinished = match how {
            "" => ResumePolicy::Pause,
            "go-on" => ResumePolicy::Continue,
            "replace" => ResumePolicy::Discard,
            other => panic!("unfinished {other}"),
        };
        // Converts the records to JSON and back, as a store would.
        let records =
            self.records.iter().map(|record| serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap()).collect();
        self.machine = machine_with(self.approver, self.max_steps, self.limits.clone(), self.approval_timeout);
        self.changes.begin_anew();
        self.machine.cx.options.model.context_window = self.window;
        self.machine.cx.options.hooks = self.hooks;
        let at = self.at();
        self.machine.set_recovery_info(known);
        self.machine.restore(records, settled, unfinished, at)
    }

    fn stalled(&mut self, stalled: bool) -> Vec<Effect> {
        let told = self.machine.set_stalled(stalled);
        told.map(|kind| Effect::Emit { task_id: None, step_id: None, kind }).into_iter().collect()
    }

    /// Parses `STOP@INPUT_TOKENS | text | ID Tool {json} | …`.
    fn completion(&mut self, rest: &str) -> Completion {
        let mut items = rest.split(" | ");
        let stop = items.next().unwrap();
        let (stop, input_tokens) = stop.split_once('@').map_or((stop, 100), |(stop, tokens)| (stop, tokens.parse().unwrap()));
        let stop_reason: StopReason = serde_json::from_value(stop.into()).unwrap();
        let content: Vec<Part> = items
            .map(|item| match item.strip_prefix('#') {
                None => Part::Text { text: item.to_owned() },
                Some(call) => {
                    let mut words = call.splitn(3, ' ');
                    Part::ToolCall(ToolCall {
                        tool_call_id: CallId::new(words.next().unwrap()),
                        tool_name: words.next().unwrap().to_owned(),
                        arguments: CallArguments::parse(words.next().unwrap_or("{}")),
                    })
                }
            })
            .collect();
        self.calls = content
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall(call) => Some(call.clone()),
                Part::Text { .. } | Part::Reasoning { .. } | Part::ToolResult(_) | Part::Image(_) => None,
            })
            .collect();
        let usage = Usage { input_tokens, output_tokens: 10, ..Usage::default() };
        Completion { content, stop_reason, usage, model: None }
    }

    /// Parses a plan such as `0=read a.rs`, `0=write a.rs`, `0=exec LINE` or `0=error CODE`. A command line can be
    /// preceded by `?` if it can be previewed, by `!` if it ran in a preview without effects, by `!PATH` if it wrote
    /// to that path, by `!PATH:CODE:OUTPUT` if it exited with that code, and by `+example.com,…` or `+network` for
    /// requested access. A path can be preceded by `#2` for two hunks and by `=WORDS` for the user's changes.
    fn plan(&self, item: &str) -> (usize, Result<Plan, ToolError>) {
        let (index, what) = item.split_once('=').unwrap();
        let (verb, rest) = what.split_once(' ').unwrap();
        let (mark, rest) = match rest.split_once(' ') {
            Some((mark, rest)) if mark.starts_with(['?', '!', '+', '#', '=', '^', '%']) => (mark, rest),
            _ => ("", rest),
        };
        let opens = mark.trim_start_matches('^').strip_prefix('+').map_or("", |names| names).split(',');
        let opens: Vec<SandboxAccess> = opens.filter(|name| !name.is_empty()).map(outside).collect();
        let effects = mark.strip_prefix('!').map(|path| {
            let mut parts = path.splitn(3, ':');
            let (path, code) = (parts.next().unwrap(), parts.next());
            let ran = code.map(|code| {
                let printed = parts.next().unwrap_or_default().replace('_', " ");
                (format!("exit {code}"), format!("Exit code: {code}\n{printed}"))
            });
            let (ended, output) = ran.unwrap_or_default();
            let kind = EffectKind::Created { bytes: 1, binary: false };
            let file = FileEffect { path: path.to_owned(), kind, notes: Vec::new() };
            Box::new(Effects {
                files: Some(file).filter(|file| !file.path.is_empty()).into_iter().collect(),
                ended,
                output,
                ..Effects::default()
            })
        });
        let layer = Self::layer(mark);
        let effects = effects.or_else(|| layer_effects(mark));
        let part = |path: &str| EffectPart { path: path.to_owned(), hunk: None, name: None, first: 0, end: 0 };
        let parts = effects.iter().flat_map(|effects| effects.listed_paths().map(part)).collect();
        let index: usize = index.parse().unwrap();
        let target = |path: &str| Target {
            given: path.to_owned(),
            real: PathBuf::from("/w").join(path),
            place: if verb == "absent" { Place::Missing } else { Place::File { bytes: 10 } },
        };
        let action = match verb {
            "read" | "absent" => Some(Action::Read { target: target(rest) }),
            "write" => Some(Action::Write { target: target(rest) }),
            "exec" => Some(Action::Exec { command: rest.to_owned(), cwd: target("") }),
            // The call would write to this path but finds nothing to change.
            "same" => Some(Action::Read { target: target(rest) }),
            // The call only reads a running command's output, so it has no action.
            "poll" => None,
            "error" | "missing" | "missing-to-read" => return (index, Err(ToolError::new(ErrorCode::FileNotFound, rest))),
            other => panic!("plan {other}"),
        };
        let plan = Plan {
            call: self.calls[index].clone(),
            tool_name: self.calls[index].tool_name.clone(),
            summary: format!("{verb} {rest}"),
            changes: !matches!(verb, "read" | "absent" | "poll" | "same"),
            waits_for_user: false,
            proposal: (verb == "write" || effects.is_some()).then(|| Proposal {
                summary: format!("{verb} {rest}"),
                paths: vec![rest.into()],
                ..Proposal::default()
            }),
            actions: action.into_iter().chain(opens.iter().filter_map(fetched)).collect(),
            places: Vec::new(),
            runs: rest.strip_prefix("sh ").map(|script| PathBuf::from("/w").join(script)).into_iter().collect(),
            preview: if mark == "?" || (mark.starts_with('^') && opens.is_empty()) {
                PreviewOffer::Possible
            } else {
                PreviewOffer::None
            },
            effects,
            layer,
            opens,
            timeout_seconds: 300,
            sandbox: None,
            task_plan: None,
            doubts: crate::ports::Doubts::default(),
            amends: PlanAmendments {
                offer: Amendable {
                    hunks: (0..mark.strip_prefix('#').map_or(0, |count| count.parse().unwrap()))
                        .map(|_| Hunk { file: Some(0), first: 0, end: 1, name: None, fixed: None })
                        .collect(),
                    effects: parts,
                    command: (verb == "exec").then(|| rest.to_owned()),
                    unsandboxed: verb == "exec",
                    edited: mark.starts_with('='),
                    ..Amendable::default()
                },
                texts: Vec::new(),
                discarded: Vec::new(),
                told: mark.strip_prefix('=').map(|words| words.replace('_', " ")),
            },
            hook_runs: None,
            payload: Box::new(()),
        };
        (index, Ok(plan))
    }

    /// Parses the layer mark of a command line: `^` if it can run in a layer, `^+HOST` if it can do so with access,
    /// `^WHY` if it cannot, and `%a.rs,-b.rs` if it ran in a layer with these effects.
    fn layer(mark: &str) -> LayerRun {
        if let Some(reason) = mark.strip_prefix('^') {
            let reason = reason.replace('_', " ");
            return if reason.is_empty() || reason.starts_with('+') {
                LayerRun::Possible
            } else {
                LayerRun::Impossible { reason }
            };
        }
        let Some(effects) = layer_effects(mark) else { return LayerRun::None };
        let target = |path: &str| Target {
            given: path.to_owned(),
            real: PathBuf::from("/w").join(path),
            place: Place::File { bytes: 10 },
        };
        let deletes = |file: &&FileEffect| matches!(file.kind, EffectKind::Deleted { .. });
        let action = |file: &FileEffect| match file.kind {
            EffectKind::Deleted { .. } => Action::Delete { target: target(&file.path) },
            _ => Action::Write { target: target(&file.path) },
        };
        LayerRun::Ended(LayerEnd {
            stopped: effects.ended.starts_with("killed"),
            error: None,
            ended: None,
            actions: Some(effects.files.iter().map(action).collect()),
            beyond_edits: effects.files.iter().any(|file| deletes(&file)),
            beyond_rewind: effects.files.iter().any(|file| file.path.starts_with("ignored")),
            digest: "d1".to_owned(),
        })
    }

    /// Parses a plan together with the actions derived from the call's arguments: `missing PATH` and `same PATH`
    /// would write to the path, and `missing-to-read PATH` would read it.
    fn planned(&self, item: &str) -> PlanResult {
        let target = |path: &str| Target { given: path.to_owned(), real: PathBuf::from("/w").join(path), place: Place::Missing };
        let named = item.split_once('=').and_then(|(_, what)| what.split_once(' '));
        let scope = match named {
            Some(("missing" | "same", paths)) => paths.split(' ').map(|path| Action::Write { target: target(path) }).collect(),
            Some(("missing-to-read", path)) => vec![Action::Read { target: target(path) }],
            _ => Vec::new(),
        };
        let (index, plan) = self.plan(item);
        PlanResult { index, scope, plan }
    }

    fn perform(&mut self, effects: Vec<Effect>) -> String {
        let mut text = String::new();
        for effect in effects {
            let line = match effect {
                Effect::Commit(records, durability) => {
                    let names: Vec<_> = records.iter().map(|record| tag(record, "record")).collect();
                    self.records.extend(records);
                    format!("commit {durability:?}: {}", names.join(" "))
                }
                Effect::Emit { kind, .. } => {
                    if let EventKind::StateChanged { session_status, task } = &kind {
                        self.changes.note(*session_status, task.as_ref());
                        if !self.states {
                            continue;
                        }
                    } else {
                        self.changes.is_in_force(&kind, self.approver == Approver::User);
                    }
                    format!("emit {}", show(&kind))
                }
                Effect::Request(ref request) | Effect::RequestSummary(ref request) => {
                    let role = |message: &Arc<Message>| match message.content.len() {
                        parts if message.role == Role::User && parts > 1 => format!("User×{parts}"),
                        _ => format!("{:?}", message.role),
                    };
                    let roles: Vec<_> =
                        request.messages.iter().map(|message| format!("{}{}", kind_of(message), role(message))).collect();
                    let to = if matches!(effect, Effect::RequestSummary(_)) { " from the summary model" } else { "" };
                    format!("request{to} {}", roles.join(" "))
                }
                Effect::StopModel => "stop the model".to_owned(),
                Effect::Plan(calls) => {
                    for (index, call) in &calls {
                        match self.calls.get_mut(*index) {
                            Some(known) => known.clone_from(call),
                            // A user command, which is not part of any response.
                            None => self.calls.push(call.clone()),
                        }
                    }
                    let names: Vec<_> = calls.iter().map(|(index, call)| format!("{index}={}", call.tool_name)).collect();
                    format!("plan {}", names.join(" "))
                }
                Effect::HookCalls(calls) => {
                    self.calls.extend(calls.iter().skip(self.calls.len()).map(|(_, call)| call.clone()));
                    let names: Vec<_> = calls.iter().map(|(index, call)| format!("{index}={}", call.tool_name)).collect();
                    format!("hook {}", names.join(" "))
                }
                Effect::Hook { ticket, occasion } => {
                    self.ticket = ticket;
                    format!("hook {occasion:?}")
                }
                Effect::PlanOpened { index, call, opens, amendments } => {
                    self.calls[index].clone_from(&call);
                    let names: Vec<_> = opens.iter().map(ToString::to_string).collect();
                    let opened = if names.is_empty() { String::new() } else { format!(" with {} opened", names.join(" ")) };
                    let amended = amendments.iter().fold(String::new(), |told, amendment| told + &format!(", {amendment:?}"));
                    format!("plan {index}={}{opened}{amended}", call.tool_name)
                }
                Effect::Amend { index, plan, amendment } => format!("amend {index}={}: {amendment:?}", plan.summary),
                Effect::Preview { index, plan, permit, ticket } => {
                    assert!(permit.covers(&plan.actions));
                    self.ticket = ticket;
                    format!("preview {index}")
                }
                Effect::TellRewindPoints { points, .. } => format!("tell {} points", points.len()),
                Effect::PlanRewind { plan, .. } => format!("plan a rewind of {} messages", plan.messages),
                Effect::Rewind(rewind) => format!("put files back as {} since {:?}", rewind.number, rewind.since),
                Effect::ReopenLayer { index, call, ticket, .. } => {
                    self.ticket = ticket;
                    self.calls.resize(self.calls.len().max(index + 1), call.clone());
                    self.calls[index] = call;
                    format!("reopen the layer of {index}")
                }
                Effect::StopPreview { .. } => "stop the preview".to_owned(),
                Effect::ListChanges { ticket, since, .. } => {
                    self.ticket = ticket;
                    format!("list changes since {}", since.map_or_else(|| "the start".to_owned(), |task| task.to_string()))
                }
                Effect::Background { .. } => "background".to_owned(),
                Effect::StopCommand { id } => format!("stop command {id}"),
                Effect::Run { index, permit, .. } => format!("run {index} by {}", permit.rule()),
                Effect::InterruptTools => "interrupt tools".to_owned(),
                Effect::KillTools => "kill tools".to_owned(),
                Effect::Remember { grant, .. } => format!("remember {:?} {}", grant.scope, grant.rules[0]),
                Effect::Forget(grant) => format!("forget {}", grant.names.join(" ")),
                Effect::ListGrants => "list grants".to_owned(),
                Effect::Recent { offer, .. } => format!("recent commands for {offer}"),
                Effect::Wake { after_ms, ticket } => format!("wake after {after_ms} ms with {ticket}"),
                Effect::SaveDraft(text) => format!("save draft {text:?}"),
                Effect::ReloadPolicy => "reload the policy".to_owned(),
                Effect::PlanMentions { ticket, calls } => {
                    self.ticket = ticket;
                    let names: Vec<_> = calls.iter().map(|call| format!("{} {:?}", call.tool_name, call.arguments)).collect();
                    self.calls = calls;
                    format!("plan mentions {}", names.join("; "))
                }
                Effect::ReadMentions { runs, resources, .. } => {
                    let names: Vec<_> =
                        runs.iter().map(|(plan, permit)| format!("{} by {}", plan.summary, permit.rule())).collect();
                    let names =
                        names.into_iter().chain(resources.into_iter().map(|one| format!("{} of {}", one.uri, one.server)));
                    format!("read mentions {}", names.collect::<Vec<_>>().join("; "))
                }
                Effect::OpenModel { name, .. } => format!("open model {name}"),
                Effect::UseModel { name } => format!("use model {name}"),
                Effect::ListModels { ask } => format!("list models, ask {ask}"),
                Effect::End => "end".to_owned(),
            };
            let _ = writeln!(text, "{}", folded(&line));
        }
        text
    }
}

/// Parses a budget such as `session tokens 700`.
fn limit_of(text: &str, between: char) -> BudgetLimit {
    let words: Vec<&str> = text.split(between).collect();
    let [scope, unit, limit] = words[..] else { panic!("limit {text}") };
    BudgetLimit {
        scope: serde_json::from_value(scope.into()).unwrap(),
        unit: serde_json::from_value(unit.into()).unwrap(),
        limit: limit.parse().unwrap(),
    }
}

/// Parses the outcome of the pre-call hook `h`, such as `0=ask why`.
fn call_hooks(item: &str) -> (usize, CallHooks) {
    let (index, what) = item.split_once('=').unwrap();
    let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
    let reason = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
    let run = HookRun { hook: "h".to_owned(), ..HookRun::default() };
    let with = |decision| vec![HookRun { decision, reason: reason.clone(), ..run.clone() }];
    let hooks = match verb {
        "none" => CallHooks::default(),
        "deny" => CallHooks { runs: with(HookDecision::Deny), arguments: None },
        "ask" => CallHooks { runs: with(HookDecision::Ask), arguments: None },
        "context" => CallHooks { runs: vec![HookRun { context: reason, ..run }], arguments: None },
        "rewrite" => {
            let arguments = Some(CallArguments::Object(serde_json::from_str(rest).unwrap()));
            CallHooks { runs: vec![HookRun { rewrote: true, ..run }], arguments }
        }
        other => panic!("hook {other}"),
    };
    (index.parse().unwrap(), hooks)
}

/// Creates a machine configured by the first line of a case.
fn sim_of(text: &str) -> Sim {
    let nobody = text.lines().next().is_some_and(|line| line.contains("approver=nobody"));
    let steps = text.lines().next().and_then(|line| line.split("steps=").nth(1)).and_then(|word| word.trim().parse().ok());
    let mut sim = Sim::new(if nobody { Approver::Nobody } else { Approver::User }, steps.unwrap_or(50));
    let options = text.lines().next().filter(|line| line.starts_with('#')).unwrap_or_default();
    let limits = options.split(' ').filter_map(|word| word.strip_prefix("limit="));
    let allowance = |word| BudgetSetting { limit: limit_of(word, ':'), set_by: "config.toml:3".to_owned(), for_this_run: false };
    sim.limits = limits.map(allowance).collect();
    let seconds = options.split("timeout=").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    sim.approval_timeout = seconds.map(Duration::from_secs);
    sim.machine = machine_with(sim.approver, sim.max_steps, sim.limits.clone(), sim.approval_timeout);
    // A few words fill a small context window.
    if options.contains("window=10000") {
        sim.window = 10_000;
        sim.machine.cx.options.model.context_window = sim.window;
    }
    if options.contains("laxest=auto") {
        sim.machine.cx.options.laxest = Mode::Auto;
    }
    if let Some(name) = options.split(' ').find_map(|word| word.strip_prefix("fallback=")) {
        sim.machine.cx.options.fallback_models = vec![name.to_owned()];
        sim.machine.requests.reload_models(&sim.machine.cx.options);
    }
    // Context window of the summary model. With a trailing `?`, the model's price is unknown.
    if let Some(window) = options.split(' ').find_map(|word| word.strip_prefix("summary=")) {
        let price = Some(SMALL_PRICE).filter(|_| !window.ends_with('?'));
        let facts = ModelFacts::for_test("small/model", window.trim_end_matches('?').parse().unwrap(), price);
        sim.machine.cx.options.summary_model = Some(facts);
        sim.machine.requests.reload_models(&sim.machine.cx.options);
    }
    if let Some(names) = options.split(' ').find_map(|word| word.strip_prefix("hooks=")) {
        sim.hooks = names.split(',').map(|name| HookEvent::from_name(name).unwrap()).collect();
        sim.machine.cx.options.hooks = sim.hooks;
    }
    sim.states = options.contains("states");
    if !sim.states {
        let begun = sim.machine.begin_session();
        sim.perform(begun);
    }
    sim
}

/// Plays one case file. Its first line may be `# approver=nobody timeout=300 states steps=3 limit=session:tokens:700
/// window=10000 laxest=auto fallback=other/model summary=50000 hooks=PreToolUse,Stop`.
fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut sim = sim_of(&text);
    let mut played = String::new();
    for line in text.lines() {
        if line.starts_with('#') || line.is_empty() {
            let _ = writeln!(played, "{line}");
        } else if let Some(input) = line.strip_prefix("> ") {
            let _ = writeln!(played, "{line}");
            let effects = sim.play(input);
            played.push_str(&sim.perform(effects));
            assert_eq!(
                sim.machine.tasks.states().refused,
                0,
                "{}: after {line}: {}",
                path.display(),
                sim.machine.tasks.states().refusal
            );
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &played).unwrap();
        return;
    }
    assert_eq!(played, text.trim_end().to_owned() + "\n", "{} (UPDATE=1 rewrites it)", path.display());
}

#[test]
fn turn_machine_cases_produce_the_expected_effects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/turn");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10, "cases are missing");
    for file in files {
        check(&file);
    }
}
