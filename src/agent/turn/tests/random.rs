//! Tests with random inputs in random order and crashes at any point. The machine's guarantees are checked against a
//! simple model of its environment.

use super::*;
use crate::ports::{FileRewind, FileRewindResult, SavedRules};
use crate::protocol::{CountedEffects, GrantRule, PreviewOffer, QueuedMessage, RewindScope, RewindTarget};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Call within a step. Providers may reuse an ID in a later step.
type Key = (String, CallId);

/// Tools. `missing` cannot be planned and `same` finds nothing to change until another call in the step is done; both
/// then write.
const TOOLS: [&str; 12] = [
    "read a",
    "read b",
    "write a",
    "write b",
    "exec make",
    "exec true-by-rule",
    "exec sudo ls",
    "error gone",
    "missing a",
    "missing b",
    "same a",
    "same b",
];

/// Successive contents of the policy file: the usual policy, one that denies actions that would need approval, an
/// expired one, and one that requires previews of all commands.
const POLICIES: [&str; 4] = [
    POLICY,
    "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
     [capabilities.\"Shell.Exec\"]\nrequires_approval = true\nblocked_commands = [\"make\", \"sudo\"]\n",
    "schema_version = 1\nexpires_at = 2025-12-31T00:00:00Z\n[capabilities.\"Shell.Exec\"]\nrequires_approval = false\n",
    "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\npreview = \"always\"\n\
     [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"true-by-rule\"]\ndecision = \"allow\"\n\
     [capabilities.\"Network.Http\"]\nrequires_approval = true\n",
];

/// Call to be planned, with the access to grant.
type ToPlan = (usize, ToolCall, Vec<SandboxAccess>);

/// Environment of the machine: the work in progress, and the disk.
struct World {
    machine: TurnMachine,
    person: bool,
    now: Timestamp,
    journal: Vec<Record>,
    /// Valid only while the process is running.
    streaming: bool,
    plans: Vec<Vec<ToPlan>>,
    previews: Vec<(usize, u64, Plan)>,
    runs: Vec<(usize, Plan)>,
    wakes: Vec<u64>,
    /// Prompt whose mentioned files are being planned or read.
    mentioned: Option<(u64, Vec<ToolCall>)>,
    planned_mentions: Option<(u64, usize)>,
    /// Model that is being opened.
    opening: Option<String>,
    questions: Vec<ApprovalId>,
    unknown: Vec<CallId>,
    completed: BTreeSet<Key>,
    ended: bool,
    /// Number of completed runs of each call.
    ran: BTreeMap<Key, u32>,
    rerun: BTreeSet<Key>,
    /// Calls that ran again with additional access.
    reopened: BTreeSet<Key>,
    prompts: Vec<(String, bool)>,
    /// Number of messages sent so far, used to make each message unique.
    said: usize,
    /// Prompts that were returned to the user.
    drafts: BTreeSet<String>,
    answers: usize,
    /// Index of the policy in the policy file.
    policy: usize,
    /// Files of a rewind in progress. After a crash, the rewind may or may not have completed.
    rewinding: Option<FileRewind>,
    rules: Vec<GrantRule>,
    keeping: Vec<Effect>,
}

/// Checks that each completed step is both saved and emitted, which is how a client knows the last step.
fn check_completed_steps(effects: &[Effect]) {
    let saved = |effect: &Effect| match effect {
        Effect::Commit(records, _) => records.iter().filter(|record| matches!(record, Record::StepCompleted { .. })).count(),
        _ => 0,
    };
    let emitted = |effect: &&Effect| matches!(effect, Effect::Emit { kind: EventKind::StepCompleted { .. }, .. });
    assert_eq!(effects.iter().map(saved).sum::<usize>(), effects.iter().filter(emitted).count(), "{effects:?}");
}

/// Returns a machine whose context window fills up quickly.
fn small(approver: Approver) -> TurnMachine {
    let mut machine = machine(approver, 6);
    machine.cx.options.model.context_window = 8_000;
    machine
}

fn world(person: bool) -> World {
    World {
        machine: begun(person),
        person,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        journal: Vec::new(),
        streaming: false,
        plans: Vec::new(),
        previews: Vec::new(),
        runs: Vec::new(),
        wakes: Vec::new(),
        mentioned: None,
        planned_mentions: None,
        opening: None,
        questions: Vec::new(),
        unknown: Vec::new(),
        completed: BTreeSet::new(),
        ended: false,
        ran: BTreeMap::new(),
        rerun: BTreeSet::new(),
        reopened: BTreeSet::new(),
        prompts: Vec::new(),
        said: 0,
        drafts: BTreeSet::new(),
        answers: 0,
        policy: 0,
        rewinding: None,
        rules: Vec::new(),
        keeping: Vec::new(),
    }
}

/// Returns a machine at the start of a process.
fn begun(person: bool) -> TurnMachine {
    let approver = if person { Approver::User } else { Approver::Nobody };
    let mut machine = machine_with(approver, 6, Vec::new(), Some(Duration::from_secs(300)));
    machine.cx.options.model.context_window = 8_000;
    // If there is a user, another model writes the summaries as long as the messages fit its context window.
    if person {
        machine.cx.options.summary_model = Some(ModelFacts::for_test("small/model", 6_000, Some(SMALL_PRICE)));
        machine.requests.reload_models(&machine.cx.options);
    }
    machine.begin_session();
    machine
}

impl World {
    fn at(&mut self) -> InputTime {
        self.now += jiff::SignedDuration::from_millis(400);
        InputTime { now: self.now, jitter: 0.5 }
    }

    /// Sends an input. If `survived` is set, performs at most that many of its effects and then kills the process.
    fn give(&mut self, input: Input, survived: Option<usize>, unfinished: ResumePolicy) {
        let at = self.at();
        let effects = self.machine.handle(input, at);
        let count = survived.unwrap_or(effects.len());
        self.perform(effects.into_iter().take(count));
        if self.ended {
            self.machine.end_session(true);
        }
        assert_eq!(
            self.machine.tasks.states().refused,
            0,
            "a state followed that may not: {}",
            self.machine.tasks.states().refusal
        );
        if survived.is_some() || self.ended {
            self.crash(unfinished);
        }
    }

    fn crash(&mut self, unfinished: ResumePolicy) {
        self.machine = begun(self.person);
        self.machine.cx.policy.replace(enforcer(POLICIES[self.policy]));
        if self.answers.is_multiple_of(2) {
            for effect in std::mem::take(&mut self.keeping) {
                self.keep(effect, true);
            }
        }
        self.keeping.clear();
        self.machine.cx.policy.replace_user_layer(self.layer(), GrantScope::Project);
        (self.streaming, self.ended, self.rewinding) = (false, false, None);
        self.plans.clear();
        self.previews.clear();
        // Recovery completes the changes that were being applied and therefore knows their outcome.
        let kept = self.runs.drain(..).filter(|(_, plan)| plan.effects.is_some());
        let found = |(_, plan): (usize, Plan)| ToolResult::success(plan.call.tool_call_id, plan.tool_name, "kept");
        let settled: Vec<ToolResult> = kept.map(found).filter(|_| self.answers.is_multiple_of(3)).collect();
        self.wakes.clear();
        (self.mentioned, self.planned_mentions, self.opening) = (None, None, None);
        self.questions.clear();
        self.unknown.clear();
        self.completed.clear();
        let at = self.at();
        let records = self.journal.iter().map(|record| serde_json::to_string(record).unwrap());
        let records = records.map(|json| serde_json::from_str(&json).unwrap()).collect();
        let effects = self.machine.restore(records, settled, unfinished, at);
        check_completed_steps(&effects);
        self.perform(effects);
        self.has_the_steps_of_the_journal();
        assert_eq!(
            self.machine.tasks.states().refused,
            0,
            "a state followed that may not: {}",
            self.machine.tasks.states().refusal
        );
        self.ended = false;
    }

    fn layer(&self) -> Option<Layer> {
        let rule = |rule: &GrantRule| {
            format!("[[capabilities.\"{}\".rules]]\n{}\ndecision = \"allow\"\n", rule.capability(), rule.keys().join("\n"))
        };
        let text = format!("schema_version = 1\n{}", self.rules.iter().map(rule).collect::<String>());
        (!self.rules.is_empty()).then(|| Layer::new(Scope::Mine, Bundle::parse_rules(&text, "mine").unwrap()))
    }

    /// Changes the user's policy file, or fails to do so.
    fn keep(&mut self, effect: Effect, works: bool) -> RuleFileResult {
        let full = || Err("the disk is full".to_owned());
        let saved = |world: &Self| Ok(SavedRules { names: vec!["mine-here:3".to_owned()], layer: world.layer() });
        match effect {
            Effect::Remember { grant, .. } if works => {
                self.rules.extend(grant.rules.clone());
                RuleFileResult::Saved(grant, saved(self))
            }
            Effect::Remember { grant, .. } => RuleFileResult::Saved(grant, full()),
            Effect::Forget(grant) if works => {
                self.rules.retain(|rule| !grant.rules.contains(rule));
                RuleFileResult::Removed(grant, saved(self))
            }
            Effect::Forget(grant) => RuleFileResult::Removed(grant, full()),
            _ => RuleFileResult::Listed(Ok(Vec::new())),
        }
    }

    fn change(&mut self, which: usize) -> Input {
        self.policy = which % POLICIES.len();
        let mut enforcer = enforcer(POLICIES[self.policy]);
        enforcer.replace_user_layer(self.layer(), GrantScope::Project);
        Input::PolicyChanged(Box::new(PolicyChange {
            enforcer,
            tools: OfferedTools { definitions: Vec::new().into(), names: Vec::new() },
            sandbox: "NONE".to_owned(),
            sandbox_status: bare(),
            name: "test".to_owned(),
            message: Some("policy reloaded".to_owned()),
        }))
    }

    fn step(&self) -> String {
        let step = self.journal.iter().rev().find_map(|record| match record {
            Record::StepStarted { step_id, .. } => Some(step_id.to_string()),
            _ => None,
        });
        step.unwrap_or_default()
    }

    fn perform(&mut self, effects: impl IntoIterator<Item = Effect>) {
        for effect in effects {
            match effect {
                Effect::Commit(records, _) => {
                    assert!(!records.is_empty());
                    for record in records {
                        self.committed(record);
                    }
                }
                Effect::Emit { kind, .. } => self.heard(kind),
                Effect::Request(request) | Effect::RequestSummary(request) => {
                    check_request(&request.messages);
                    self.has_what_the_person_wants(&request.messages);
                    self.streaming = true;
                }
                Effect::StopModel => self.streaming = false,
                Effect::Plan(calls) => {
                    self.plans.push(calls.into_iter().map(|(index, call)| (index, call, Vec::new())).collect());
                }
                // These sessions have no hooks.
                Effect::HookCalls(_) | Effect::Hook { .. } => unreachable!(),
                Effect::PlanOpened { index, call, opens, .. } => self.plans.push(vec![(index, call, opens)]),
                Effect::Amend { index, plan, .. } => self.plans.push(vec![(index, plan.call, plan.opens)]),
                Effect::Preview { index, plan, permit, ticket } => {
                    assert!(permit.covers(&plan.actions));
                    let id = &plan.call.tool_call_id;
                    let begun =
                        |record: &Record| matches!(record, Record::PreviewStarted { tool_call_id, .. } if tool_call_id == id);
                    assert!(self.of_this_step().iter().any(begun), "{id} is previewed without its record");
                    self.previews.push((index, ticket, plan));
                }
                Effect::ReopenLayer { index, call, ticket, .. } => {
                    self.previews.push((index, ticket, plan_of(call, Vec::new(), true).unwrap()));
                }
                // Some previews finish anyway.
                Effect::StopPreview { ticket } if ticket % 2 == 0 => self.previews.retain(|(_, begun, _)| *begun != ticket),
                Effect::Run { index, plan, permit, .. } => {
                    assert!(permit.covers(&plan.actions));
                    self.run(index, plan);
                }
                Effect::Wake { ticket, .. } => self.wakes.push(ticket),
                Effect::SaveDraft(text) => self.drafts.extend(text.split("\n\n").map(ToOwned::to_owned)),
                Effect::Remember { ref grant, .. } => {
                    let said = |record: &Record| matches!(record, Record::Decided { decision: Decision::ApprovedAlways { remember }, .. } if remember.scope == grant.scope);
                    assert!(self.of_this_step().iter().any(said), "a rule is saved before the person's word is");
                    self.keeping.push(effect);
                }
                Effect::Forget(_) | Effect::ListGrants => self.keeping.push(effect),
                Effect::Recent { .. }
                | Effect::InterruptTools
                | Effect::KillTools
                | Effect::ReloadPolicy
                | Effect::Background { .. }
                | Effect::StopCommand { .. } => {}
                Effect::StopPreview { .. } | Effect::UseModel { .. } | Effect::ListModels { .. } => {}
                Effect::OpenModel { name, .. } => self.opening = Some(name),
                Effect::PlanMentions { ticket, calls } => self.mentioned = Some((ticket, calls)),
                Effect::ReadMentions { ticket, runs, .. } => {
                    assert!(runs.iter().all(|(plan, permit)| permit.covers(&plan.actions)));
                    self.planned_mentions = Some((ticket, runs.len()));
                }
                Effect::TellRewindPoints { .. } | Effect::PlanRewind { .. } => {}
                // These sessions have no goals.
                Effect::ListChanges { .. } => unreachable!(),
                Effect::Rewind(rewind) => {
                    let id = FileRewind::task_id(rewind.number).to_string();
                    let begun = |record: &Record| matches!(record, Record::RewindStarted { rewind_id, .. } if *rewind_id == id);
                    assert!(self.journal.iter().any(begun), "{id} is begun without its record");
                    let done = |record: &Record| matches!(record, Record::Rewound { rewind_id, .. } if *rewind_id == id);
                    assert!(!self.journal.iter().any(done), "{id} is done twice");
                    self.rewinding = Some(rewind);
                }
                Effect::End => self.ended = true,
            }
        }
    }

    /// Checks that a client counts the same steps as an export and the session list.
    fn has_the_steps_of_the_journal(&self) {
        let state = crate::session::SessionState::from_records(&self.journal);
        let task = self.machine.tasks.current().filter(|task| task.user_command().is_none());
        if let Some((task, progress)) = task.zip(state.task()).filter(|(task, progress)| *task.id() == progress.task_id) {
            assert_eq!(task.step_count(), progress.step_count, "{} and the journal", task.id());
        }
    }

    /// Checks that the user's request is present verbatim, regardless of summaries and dropped messages.
    fn has_what_the_person_wants(&self, messages: &[Arc<Message>]) {
        if self.machine.is_compacting() {
            return;
        }
        let wanted = self.journal.iter().rev().find_map(|record| match record {
            Record::TaskStarted { prompt, .. } => Some(prompt.typed_text()),
            _ => None,
        });
        let Some(wanted) = wanted else { return };
        let has = |message: &Arc<Message>| {
            message.content.iter().any(|part| matches!(part, Part::Text { text } if text.as_str() == wanted))
        };
        assert!(messages.iter().filter(|message| message.role == Role::User).any(has), "`{wanted}` is not asked for");
    }

    fn committed(&mut self, record: Record) {
        if let Record::Resolved { tool_call_id, resolution: Resolution::Rerun } = &record {
            self.rerun.insert((self.step(), tool_call_id.clone()));
        }
        if let Record::TaskEnded { .. } | Record::StepCompleted { .. } = &record {
            self.every_request_is_completed();
        }
        if let Record::Finished { result, .. } = &record {
            self.what_ran_is_told(result);
        }
        self.journal.push(record);
    }

    /// Checks that the result of a blocked call that did not run again contains the output of the blocked run. If the
    /// run was interrupted in a layer, the result must first state where the output comes from.
    fn what_ran_is_told(&self, told: &ToolResult) {
        let of_it = self.of_this_step().iter().rev().find_map(|record| match record {
            Record::Started { tool_call_id, .. } if *tool_call_id == told.tool_call_id => Some(None),
            Record::KeptFrom { result, .. } if result.tool_call_id == told.tool_call_id => Some(Some(result)),
            Record::Unreadable => Some(None),
            _ => None,
        });
        if let Some(Some(first)) = of_it {
            assert!(told.output_text.contains(&first.output_text), "{told:?} forgets what it did");
        }
    }

    /// Returns whether the user approved a second run.
    fn was_opened(&self, id: &CallId) -> bool {
        let records = self.of_this_step();
        let kept = |record: &Record| matches!(record, Record::KeptFrom { result, .. } if result.tool_call_id == *id);
        let yes = |record: &Record| {
            matches!(record, Record::Decided { tool_call_id, decision: Decision::Approved | Decision::ApprovedAlways { .. }, .. }
                if tool_call_id == id)
        };
        records.iter().rposition(kept).is_some_and(|at| records[at..].iter().any(yes))
    }

    /// Returns the records of the current step.
    fn of_this_step(&self) -> &[Record] {
        let start = self.journal.iter().rposition(|record| matches!(record, Record::StepStarted { .. })).unwrap_or(0);
        &self.journal[start..]
    }

    fn every_request_is_completed(&self) {
        let mut balance: HashMap<&CallId, (u32, u32)> = HashMap::new();
        for record in self.of_this_step() {
            match record {
                Record::Intent { call, .. } => balance.entry(&call.tool_call_id).or_default().0 += 1,
                Record::Finished { result, .. } => balance.entry(&result.tool_call_id).or_default().1 += 1,
                _ => {}
            }
        }
        for (id, counts) in balance {
            assert_eq!(counts, (1, 1), "{id}: requested and completed");
        }
    }

    fn heard(&mut self, kind: EventKind) {
        match kind {
            EventKind::ApprovalRequested(approval) if self.person => self.questions.push(approval.approval_id),
            EventKind::ToolInterrupted { tool_call_id, .. } => self.unknown.push(tool_call_id),
            EventKind::ToolCompleted { tool_call_id, .. } => {
                let key = (self.step(), tool_call_id);
                assert!(self.completed.insert(key.clone()), "{key:?} was completed twice");
            }
            _ => {}
        }
    }

    fn run(&mut self, index: usize, plan: Plan) {
        let id = plan.call.tool_call_id.clone();
        let key = (self.step(), id.clone());
        let at = InputTime { now: self.now, jitter: 0.5 };
        self.earlier_calls_are_done(index);
        assert!(self.machine.current_denial(&plan, at).is_none(), "{key:?} runs and is denied by now");
        let finished = |record: &Record| matches!(record, Record::Finished { result, .. } if result.tool_call_id == id);
        assert!(!self.of_this_step().iter().any(finished), "{key:?} has an outcome and runs again");
        if plan.changes {
            let started = |record: &Record| matches!(record, Record::Started { tool_call_id, .. } if *tool_call_id == id);
            let times = self.of_this_step().iter().filter(|record| started(record)).count();
            let ran = self.ran.entry(key.clone()).or_default();
            assert!(times > *ran as usize, "{key:?} runs without its record");
            let again = *ran > 0;
            *ran += 1;
            if again && !self.rerun.remove(&key) {
                assert!(self.was_opened(&id), "{key:?} runs twice");
                assert!(self.reopened.insert(key.clone()), "{key:?} is opened twice");
            }
        }
        self.runs.push((index, plan));
    }

    /// Plans calls based on the current state of the environment.
    fn planned(&self, calls: Vec<ToPlan>) -> Input {
        let early = !self.of_this_step().iter().any(|record| matches!(record, Record::Finished { .. }));
        let planned = |(index, call, opens): ToPlan| {
            let name = call.tool_name.clone();
            let scope = match reach_of(&name) {
                (Some(path), true, _) => vec![Action::Write { target: target(path) }],
                (Some(path), false, _) => vec![Action::Read { target: target(path) }],
                _ => Vec::new(),
            };
            PlanResult { index, scope, plan: plan_of(call, opens, early) }
        };
        Input::Planned(calls.into_iter().map(planned).collect())
    }

    /// Checks that a call runs only after those earlier calls in its step whose effects it could observe.
    fn earlier_calls_are_done(&self, index: usize) {
        let Some(calls) = self.machine.tasks.calls().map(CallBatch::calls) else { return };
        let Some(call) = calls.get(index) else { return };
        for earlier in calls[..index].iter().filter(|earlier| !earlier.is_done()) {
            let (first, second) = (&earlier.call.tool_name, &call.call.tool_name);
            assert!(!in_order(first, second), "`{second}` runs while `{first}` before it is {:?}", earlier.state);
        }
    }

    /// Checks that each message is present exactly once: as a task, within a task, queued, or returned to the user.
    /// Messages queued for the same step are merged into one.
    fn prompts_are_kept(&self) {
        let mut there: HashMap<String, u32> = HashMap::new();
        let mut queue: &[QueuedMessage] = &[];
        for record in &self.journal {
            match record {
                Record::TaskStarted { prompt: message, .. } | Record::Steered { message } => {
                    message.text().split("\n\n").for_each(|text| *there.entry(text.to_owned()).or_default() += 1);
                }
                Record::Queue { prompts } => queue = prompts,
                _ => {}
            }
        }
        for prompt in queue {
            *there.entry(prompt.text.clone()).or_default() += 1;
        }
        for (prompt, whole) in &self.prompts {
            let count = there.get(prompt).copied().unwrap_or(0);
            let given_back = self.drafts.contains(prompt);
            assert!(count == 1 || (count == 0 && (!whole || given_back)), "`{prompt}` is there {count} times");
        }
    }

    /// Performs a random action selected by three numbers.
    fn happen(&mut self, [what, which, how]: [u8; 3]) {
        let unfinished = [ResumePolicy::Pause, ResumePolicy::Continue, ResumePolicy::Discard][usize::from(how) % 3];
        // Every fourth time, the process dies while the effects are being performed.
        let survived = which.is_multiple_of(4).then_some(usize::from(how) % 8);
        let input = match what % 37 {
            0 => {
                let mut text = self.new_words("prompt");
                if how.is_multiple_of(3) {
                    text.push_str(" of @a.rs and @b.rs");
                }
                self.prompts.push((text.clone(), survived.is_none()));
                Input::Command(Command::Prompt { text })
            }
            1..=4 if self.streaming => {
                self.streaming = false;
                Input::Delta(Delta::Completed(self.completion(which, how)))
            }
            5 if self.streaming => Input::Delta(Delta::Text("words".to_owned())),
            6 if self.streaming => {
                self.streaming = false;
                let kinds =
                    [FailureKind::Network, FailureKind::CutStream, FailureKind::InvalidRequest, FailureKind::ContextTooLong];
                Input::ModelFailed(ModelError::from(Failure::new(kinds[usize::from(which) % 4], "failed", "hint")))
            }
            1..=6 if self.rewinding.is_some() => self.put_back(how),
            34..=36 => self.rewind(what, which, how),
            1..=3 if !self.wakes.is_empty() => Input::Woken { ticket: self.wakes.remove(0) },
            1..=9 if self.mentioned.is_some() || self.planned_mentions.is_some() => self.mention(how),
            7..=12 if self.opening.is_some() => self.opened(how),
            1..=9 if !self.plans.is_empty() => {
                let calls = self.plans.remove(usize::from(which) % self.plans.len());
                self.planned(calls)
            }
            1..=10 if !self.previews.is_empty() => self.looked(usize::from(which) % self.previews.len(), how),
            1..=12 if !self.runs.is_empty() => self.finish(usize::from(which) % self.runs.len(), how),
            1..=13 if !self.questions.is_empty() => {
                let approval_id = self.questions[usize::from(which) % self.questions.len()].clone();
                let no = Decision::denied(None);
                let scope = [GrantScope::Session, GrantScope::Project, GrantScope::Everywhere][usize::from(which) % 3];
                let remember = GrantChoice { scope, offer: usize::from(how / 128) * 7, until: None };
                let decisions =
                    [Decision::Approved, no, Decision::ApprovedAlways { remember }, Decision::Previewed, Decision::Renewed];
                let decision = decisions[usize::from(how) % decisions.len()].clone();
                Input::Command(Command::Decide { approval_id, decision })
            }
            1..=13 if !self.unknown.is_empty() => {
                let tool_call_id = self.unknown[usize::from(which) % self.unknown.len()].clone();
                let resolution = [Resolution::Rerun, Resolution::Skip, Resolution::TellModel][usize::from(how) % 3];
                Input::Command(Command::Resolve { tool_call_id, resolution })
            }
            14 => Input::Command(Command::Cancel),
            15 => Input::Command(Command::Kill),
            16 => Input::Command(Command::Quit),
            17 => self.nonsense(which, how),
            18 => self.change(which.into()),
            19 => {
                let mode = [Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Auto][usize::from(which) % 4];
                Input::Command(Command::SetMode { mode })
            }
            20 => Input::Command(
                [Command::UndoGrant, Command::ListGrants, Command::ReloadPolicy, Command::UndoGrant][usize::from(how) % 4]
                    .clone(),
            ),
            24 | 25 => {
                let text = self.new_words("steer");
                self.prompts.push((text.clone(), survived.is_none()));
                Input::Command(Command::Steer { text })
            }
            26 => self.edit(which, how, survived.is_none()),
            27 => Input::Command([Command::ShowContext, Command::RetryNow][usize::from(how) % 2].clone()),
            28 => Input::Command(Command::Compact { focus: how.is_multiple_of(2).then(|| "the names".to_owned()) }),
            29 => Input::Command(Command::UndoCompaction),
            30 => Input::Command(Command::SetModel { name: format!("test/{}", which % 3) }),
            31 => {
                let unit = [BudgetUnit::Tokens, BudgetUnit::Steps][usize::from(which) % 2];
                let scope = if which.is_multiple_of(3) { BudgetScope::Task } else { BudgetScope::Session };
                Input::Command(Command::SetBudget { limit: BudgetLimit { scope, unit, limit: f64::from(how) * 100.0 } })
            }
            32 => Input::Command(Command::SetEffort { effort: [None, Some(Effort::High)][usize::from(how) % 2] }),
            33 => Input::Command([Command::RetryNow, Command::ShowBudget][usize::from(how) % 2].clone()),
            21..=23 if !self.keeping.is_empty() => {
                let effect = self.keeping.remove(usize::from(which) % self.keeping.len());
                Input::RuleFiles(self.keep(effect, !how.is_multiple_of(3)))
            }
            _ => Input::Command(Command::Continue),
        };
        self.give(input, survived, unfinished);
        self.prompts_are_kept();
    }

    /// Returns an input that starts a rewind or redo.
    fn rewind(&self, what: u8, which: u8, how: u8) -> Input {
        let scope = [RewindScope::Both, RewindScope::Conversation, RewindScope::Files][usize::from(how / 3) % 3];
        let tasks = self.journal.iter().filter(|record| matches!(record, Record::TaskStarted { .. })).count().max(1);
        let task_id = TaskId::new(format!("task_{:03}", usize::from(which) % tasks + 1));
        let mut steps = self.journal.iter().filter_map(|record| match record {
            Record::StepStarted { task_id: of, step_id, .. } if *of == task_id => Some(step_id.clone()),
            _ => None,
        });
        let step_id = steps.next_back().filter(|_| how.is_multiple_of(5));
        let target = match what % 3 {
            0 => RewindTarget::Redo,
            1 => RewindTarget::Last,
            _ => RewindTarget::Before { task_id, step_id },
        };
        Input::Command(match how % 7 {
            0 => Command::ListRewindPoints,
            1 => Command::PlanRewind { target, scope },
            _ => Command::Rewind { target, scope, overwrite: Vec::new() },
        })
    }

    /// Finishes a file rewind.
    fn put_back(&mut self, how: u8) -> Input {
        let number = self.rewinding.take().map_or(0, |rewind| rewind.number);
        let outcome = match how % 4 {
            0 => Err("the disk is full".to_owned()),
            _ => Ok(FileRewindResult { restored: u64::from(how % 3), kept: Vec::new() }),
        };
        Input::FilesRewound { number, outcome }
    }

    /// Plans or reads mentioned files.
    fn mention(&mut self, how: u8) -> Input {
        if let Some((ticket, count)) = self.planned_mentions.take() {
            let read = |number: usize| ToolResult::success(CallId::new(format!("mention_{number}")), "ReadFile", "it holds");
            return Input::MentionsRead { ticket, results: (0..count).map(read).collect() };
        }
        let (ticket, calls) = self.mentioned.take().unwrap_or_default();
        let name = if how.is_multiple_of(2) { "read a" } else { "error gone" };
        let plan = |call: ToolCall| plan_of(ToolCall { tool_name: name.to_owned(), ..call }, Vec::new(), true);
        Input::MentionsPlanned { ticket, plans: calls.into_iter().map(plan).collect() }
    }

    /// Opens a model with a smaller or larger context window, or fails to do so.
    fn opened(&mut self, how: u8) -> Input {
        let name = self.opening.take().unwrap_or_default();
        Input::ModelOpened(match how % 4 {
            0 => Err(Failure::new(FailureKind::Authentication, "no key", "hint")),
            1 => Ok(ModelFacts::for_test(&name, 20_000, None)),
            _ => Ok(ModelFacts::for_test(&name, 6_000, None)),
        })
    }

    fn new_words(&mut self, what: &str) -> String {
        self.said += 1;
        format!("{what} {}", self.said)
    }

    /// Edits or removes a queued message, which may already have been taken from the queue.
    fn edit(&mut self, which: u8, how: u8, whole: bool) -> Input {
        let id = u64::from(which % 8) + u64::from(how % 16);
        let text = if how.is_multiple_of(5) { String::new() } else { self.new_words("edited") };
        if let Some(waiting) = self.machine.prompts.queue().iter().find(|waiting| waiting.id == id) {
            // A crash in between leaves either the old or the new text.
            self.prompts.retain_mut(|(prompt, needed)| {
                *needed &= *prompt != waiting.text;
                !whole || *prompt != waiting.text
            });
        }
        if !text.is_empty() {
            self.prompts.push((text.clone(), whole));
        }
        Input::Command(Command::EditWaiting { id, text })
    }

    /// Finishes a preview with effects, without effects, or with a failure.
    fn looked(&mut self, nth: usize, how: u8) -> Input {
        let (index, ticket, plan) = self.previews.remove(nth);
        let counted = CountedEffects { path: "target".to_owned(), created: 1, changed: 0, deleted: 0, bytes: 1, direct: false };
        let counted = Some(counted).filter(|_| how.is_multiple_of(2)).into_iter().collect();
        let effects = Some(Box::new(Effects { counted, ..Effects::default() }));
        let outcome = match how % 5 {
            0 => Err(ToolError::new(ErrorCode::ToolExecutionFailed, "it needs more than a view")),
            _ => Ok(Plan { effects, preview: PreviewOffer::None, ..plan }),
        };
        Input::Previewed { index, ticket, outcome }
    }

    fn finish(&mut self, nth: usize, how: u8) -> Input {
        let (index, plan) = self.runs.remove(nth);
        let result = ToolResult::success(plan.call.tool_call_id, plan.tool_name, format!("done {how}"));
        let kept = plan.changes && how.is_multiple_of(3);
        let result = ToolResult { denied: Some(outside("example.com")).filter(|_| kept).into_iter().collect(), ..result };
        Input::ToolFinished { index, result, latency_ms: 1 }
    }

    /// Returns an input that no host would ever send.
    fn nonsense(&self, which: u8, how: u8) -> Input {
        let index = usize::from(how) % 5;
        let call = ToolCall {
            tool_call_id: CallId::new("nobody"),
            tool_name: "read a".to_owned(),
            arguments: CallArguments::Object(serde_json::Map::new()),
        };
        let result = ToolResult::success(call.tool_call_id.clone(), "read a", "out of nowhere");
        match which % 7 {
            // Only an unknown call may end here, because a running call must end exactly once.
            0 if self.runs.iter().all(|(running, _)| *running != index) => Input::ToolFinished { index, result, latency_ms: 1 },
            1 if self.plans.is_empty() => self.planned(vec![(index, call, Vec::new())]),
            2 if how.is_multiple_of(2) => {
                Input::Previewed { index, ticket: 10_000 + u64::from(how), outcome: plan_of(call, Vec::new(), true) }
            }
            2 => Input::ToolOutput { index, text: "noise".to_owned() },
            3 if how.is_multiple_of(2) => {
                let approval_id = self.questions.last().cloned().unwrap_or_else(|| ApprovalId::new("appr_999"));
                Input::Outdated { approval_id, outdated: how.is_multiple_of(4) }
            }
            3 => Input::Woken { ticket: 10_000 + u64::from(how) },
            4 if !self.streaming => Input::Delta(Delta::Text("nobody asked".to_owned())),
            5 => Input::Command(Command::Decide { approval_id: ApprovalId::new("appr_999"), decision: Decision::Approved }),
            _ => Input::Command(Command::Resolve { tool_call_id: CallId::new("nobody"), resolution: Resolution::Rerun }),
        }
    }

    fn completion(&mut self, which: u8, how: u8) -> Completion {
        self.answers += 1;
        let mut content = Vec::new();
        if how & 1 == 0 {
            content.push(Part::Text { text: format!("answer {} {}", self.answers, "z".repeat(usize::from(how) * 20)) });
        }
        for number in 0..which % 5 {
            let kind = usize::from(how.wrapping_mul(7).wrapping_add(number.wrapping_mul(13))) % TOOLS.len();
            let name = match how % 3 {
                0 => "same".to_owned(),
                1 => format!("call_{number}"),
                _ => format!("call_{}_{number}", self.answers),
            };
            content.push(Part::ToolCall(ToolCall {
                tool_call_id: CallId::new(name),
                tool_name: TOOLS[kind].to_owned(),
                arguments: CallArguments::parse(if how.is_multiple_of(11) { "{cut" } else { "{}" }),
            }));
        }
        let calls = !which.is_multiple_of(5);
        let stop_reason = match how % 16 {
            0 => StopReason::MaxTokens,
            1 => StopReason::Refusal,
            2 => StopReason::Error,
            3 => StopReason::ContextWindowExceeded,
            _ if calls => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        Completion { content, stop_reason, usage: Usage { input_tokens: 10, ..Usage::default() }, model: None }
    }

    /// Completes the session without any further failures. All work must finish.
    fn comes_to_an_end(&mut self) {
        // A machine that is ending accepts no more input.
        if self.machine.quitting {
            self.give(Input::Command(Command::Quit), None, ResumePolicy::Pause);
        }
        let usual = self.change(0);
        self.give(usual, None, ResumePolicy::Pause);
        for command in plenty() {
            self.give(Input::Command(command), None, ResumePolicy::Pause);
        }
        for _ in 0..2_000 {
            let input = if !self.keeping.is_empty() {
                let effect = self.keeping.remove(0);
                Input::RuleFiles(self.keep(effect, true))
            } else if self.rewinding.is_some() {
                self.put_back(1)
            } else if self.mentioned.is_some() || self.planned_mentions.is_some() {
                self.mention(0)
            } else if let Some(calls) = self.plans.pop() {
                self.planned(calls)
            } else if !self.previews.is_empty() {
                self.looked(0, 2)
            } else if !self.runs.is_empty() {
                self.finish(0, 1)
            } else if !self.wakes.is_empty() {
                Input::Woken { ticket: self.wakes.remove(0) }
            } else if self.streaming {
                self.streaming = false;
                let content = vec![Part::Text { text: "The end.".to_owned() }];
                let stop_reason = StopReason::EndTurn;
                Input::Delta(Delta::Completed(Completion { content, stop_reason, usage: Usage::default(), model: None }))
            } else if let Some(approval_id) = self.questions.pop() {
                Input::Command(Command::Decide { approval_id, decision: Decision::Approved })
            } else if let Some(tool_call_id) = self.unknown.pop() {
                Input::Command(Command::Resolve { tool_call_id, resolution: Resolution::TellModel })
            } else if self.machine.tasks.current().is_some()
                || self.machine.tasks.has_ended()
                || !self.machine.prompts.queue().is_empty()
            {
                Input::Command(Command::Continue)
            } else {
                return self.prompts_are_kept();
            };
            self.give(input, None, ResumePolicy::Pause);
        }
        panic!("it never ends: {:?}", self.machine.tasks.current());
    }
}

/// Returns commands that lift all budgets.
fn plenty() -> Vec<Command> {
    let kinds = [
        (BudgetScope::Session, BudgetUnit::Tokens),
        (BudgetScope::Session, BudgetUnit::Steps),
        (BudgetScope::Task, BudgetUnit::Tokens),
        (BudgetScope::Task, BudgetUnit::Steps),
    ];
    let limit = |(scope, unit)| BudgetLimit { scope, unit, limit: 1e9 };
    kinds.map(|kind| Command::SetBudget { limit: limit(kind) }).into()
}

/// Returns the path that a call with this name reads or writes, whether it writes, and whether it is a command.
fn reach_of(name: &str) -> (Option<&str>, bool, bool) {
    match name.split_once(' ').unwrap() {
        ("read", path) => (Some(path), false, false),
        ("write" | "missing" | "same", path) => (Some(path), true, false),
        ("exec", _) => (None, false, true),
        _ => (None, false, false),
    }
}

/// Returns whether the second call must wait for the first.
fn in_order(first: &str, second: &str) -> bool {
    let ((path, writes, command), (other, also_writes, also_command)) = (reach_of(first), reach_of(second));
    (path.is_some() && path == other && (writes || also_writes)) || (command && also_writes) || (writes && also_command)
}

fn target(path: &str) -> Target {
    Target { given: path.to_owned(), real: PathBuf::from("/w").join(path), place: Place::File { bytes: 10 } }
}

fn plan_of(call: ToolCall, opens: Vec<SandboxAccess>, early: bool) -> Result<Plan, ToolError> {
    let name = call.tool_name.clone();
    let (verb, rest) = match name.split_once(' ').unwrap() {
        ("missing" | "same", path) if !early => ("write", path),
        named => named,
    };
    let action = match verb {
        "same" | "read" => Action::Read { target: target(rest) },
        "write" => Action::Write { target: target(rest) },
        "exec" => Action::Exec { command: rest.to_owned(), cwd: target("") },
        _ => return Err(ToolError::new(ErrorCode::FileNotFound, rest)),
    };
    Ok(Plan {
        call,
        tool_name: name.clone(),
        summary: name.clone(),
        changes: !matches!(verb, "read" | "same"),
        waits_for_user: false,
        proposal: None,
        actions: Some(action).into_iter().chain(opens.iter().filter_map(fetched)).collect(),
        places: Vec::new(),
        runs: Vec::new(),
        preview: if verb == "exec" { PreviewOffer::Possible } else { PreviewOffer::None },
        effects: None,
        layer: LayerRun::None,
        opens,
        timeout_seconds: 300,
        sandbox: None,
        task_plan: None,
        doubts: crate::ports::Doubts::default(),
        amends: PlanAmendments::default(),
        hook_runs: None,
        payload: Box::new(()),
    })
}

/// Checks that the thread meets the requirements of all providers.
fn check_request(messages: &[Arc<Message>]) {
    assert_eq!(messages[0].role, Role::User);
    assert_ne!(messages.last().unwrap().role, Role::Assistant, "the model's own words are no question");
    let mut open: Vec<CallId> = Vec::new();
    for message in messages {
        assert!(!message.content.is_empty(), "an empty message");
        let results: Vec<CallId> = message
            .content
            .iter()
            .filter_map(|part| match part {
                Part::ToolResult(result) => Some(result.tool_call_id.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(results, open, "the results of the calls before");
        open = message.tool_calls().map(|call| call.tool_call_id.clone()).collect();
        let distinct: BTreeSet<_> = open.iter().collect();
        assert_eq!(distinct.len(), open.len(), "two calls of one name");
    }
    assert!(open.is_empty(), "a call without its result");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_events_lose_nothing_and_run_nothing_twice(
        happenings in prop::collection::vec(any::<[u8; 3]>(), 1..120),
        person in any::<bool>(),
    ) {
        let mut world = world(person);
        world.happen([0, 1, 0]);
        for happening in happenings {
            world.happen(happening);
        }
        world.comes_to_an_end();
        let mut restored = small(Approver::Nobody);
        let at = world.at();
        let summed_up = world.machine.requests.thread().has_summary();
        restored.restore(std::mem::take(&mut world.journal), Vec::new(), ResumePolicy::Pause, at);
        prop_assert_eq!(restored.requests.thread().has_summary(), summed_up);
        prop_assert_eq!(restored.requests.thread_mut().all_ids(), world.machine.requests.thread_mut().all_ids());
    }

    #[test]
    fn a_damaged_journal_yields_a_thread_that_is_valid_for_providers(
        happenings in prop::collection::vec(any::<[u8; 3]>(), 1..80),
        damage in prop::collection::vec((0..3_u8, any::<prop::sample::Index>()), 0..4),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut world = world(true);
        world.happen([0, 1, 0]);
        for happening in happenings {
            world.happen(happening);
        }
        let at = world.at();
        let mut records = std::mem::take(&mut world.journal);
        if cut {
            records.truncate(length.index(records.len().max(1)) + 1);
        }
        for (how, place) in damage.iter().filter(|_| !records.is_empty()).collect::<Vec<_>>() {
            let index = place.index(records.len().max(1));
            match how {
                0 if records.len() > 1 => { records.remove(index); }
                1 => records.insert(index, records[index].clone()),
                _ => records[index] = Record::Unreadable,
            }
        }
        let mut machine = small(Approver::Nobody);
        let mut effects = machine.restore(records, Vec::new(), ResumePolicy::Discard, at);
        prop_assert_eq!(machine.tasks.states().refused, 0);
        // Restores the files of an unfinished rewind.
        let begun = effects.iter().find_map(|effect| match effect {
            Effect::Rewind(rewind) => Some(rewind.number),
            _ => None,
        });
        if let Some(number) = begun {
            effects.extend(machine.handle(Input::FilesRewound { number, outcome: Ok(FileRewindResult::default()) }, at));
        }
        for command in plenty() {
            effects.extend(machine.handle(Input::Command(command), at));
        }
        effects.extend(machine.handle(Input::Command(Command::Prompt { text: "and now?".to_owned() }), at));
        let mut asked = 0;
        while let Some(Effect::Request(request)) = effects.iter().find(|effect| matches!(effect, Effect::Request(_))) {
            check_request(&request.messages);
            asked += 1;
            if !machine.is_compacting() {
                break;
            }
            let content = vec![Part::Text { text: "short".to_owned() }];
            let completion = Completion { content, stop_reason: StopReason::EndTurn, usage: Usage::default(), model: None };
            effects = machine.handle(Input::Delta(Delta::Completed(completion)), at);
        }
        prop_assert!(asked > 0 && !machine.is_compacting());
    }
}

/// Replays a sequence found by a random run.
fn replay(person: bool, happenings: &[[u8; 3]]) {
    let mut world = world(person);
    world.happen([0, 1, 0]);
    for happening in happenings {
        world.happen(*happening);
    }
    world.comes_to_an_end();
}

#[test]
fn the_prompt_of_a_replaced_task_survives_a_summary_and_a_restart() {
    let happenings =
        [[61, 56, 9], [37, 0, 190], [38, 11, 110], [98, 69, 0], [0, 20, 76], [0, 108, 188], [176, 9, 0], [223, 1, 4], [0, 4, 72]];
    replay(false, &happenings);
}

#[test]
fn a_blocked_command_keeps_its_output_if_its_second_run_in_a_copy_is_interrupted() {
    replay(true, &[[186, 1, 125], [38, 97, 28], [38, 1, 0], [41, 0, 42], [112, 31, 0], [232, 0, 103], [0, 0, 0]]);
}

#[test]
fn a_summary_is_not_applied_if_its_messages_no_longer_exist() {
    let happenings = [
        [0, 32, 134],
        [246, 5, 0],
        [112, 1, 49],
        [1, 0, 187],
        [186, 26, 68],
        [38, 69, 0],
        [24, 0, 89],
        [1, 0, 1],
        [186, 1, 243],
        [0, 0, 0],
        [0, 32, 44],
        [34, 0, 65],
        [112, 0, 1],
        [28, 1, 0],
    ];
    replay(false, &happenings);
}
