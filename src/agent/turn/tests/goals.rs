//! Tests of goals under random events and crashes: the number of rounds is limited, and checks run one at a time.

use super::*;
use crate::ports::GoalChange;
use proptest::prelude::*;

/// Maximum number of goal rounds in these tests.
const ROUNDS: u32 = 4;

/// Environment of a session that has one goal.
struct World {
    machine: TurnMachine,
    now: Timestamp,
    journal: Vec<Record>,
    is_streaming: bool,
    plan: Option<ToolCall>,
    preview: Option<(u64, Plan)>,
    comparison: Option<u64>,
    approval: Option<ApprovalId>,
    /// Number of requests sent so far.
    requests: u32,
}

fn goal() -> Goal {
    Goal { max_rounds: ROUNDS, ..Goal::new("make it work", "make check") }
}

fn exec(call: ToolCall) -> Plan {
    let place = Target { given: String::new(), real: PathBuf::from("/w"), place: Place::File { bytes: 1 } };
    let action = Action::Exec { command: "make check".to_owned(), cwd: place };
    let mut plan = Plan::empty(call.clone(), call.tool_name.clone(), Box::new(()));
    plan.actions = vec![action];
    plan.preview = PreviewOffer::Possible;
    plan
}

impl World {
    fn new() -> Self {
        let mut machine = machine(Approver::User, 20);
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let _ = machine.begin_session();
        let mut world = Self {
            machine,
            now,
            journal: Vec::new(),
            is_streaming: false,
            plan: None,
            preview: None,
            comparison: None,
            approval: None,
            requests: 0,
        };
        world.give(Input::Command(Command::SetGoal { goal: goal() }));
        world
    }

    fn at(&self) -> InputTime {
        InputTime { now: self.now, jitter: 0.5 }
    }

    fn give(&mut self, input: Input) {
        self.now += jiff::SignedDuration::from_millis(50);
        let at = self.at();
        let effects = self.machine.handle(input, at);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Commit(records, _) => records.into_iter().for_each(|record| self.commit(record)),
                Effect::Request(_) => {
                    self.is_streaming = true;
                    self.requests += 1;
                }
                Effect::StopModel => self.is_streaming = false,
                Effect::Plan(calls) => self.plan = calls.into_iter().next().map(|(_, call)| call),
                Effect::Preview { plan, ticket, .. } => {
                    assert!(self.preview.is_none(), "two checks at once");
                    // A comparison that was interrupted still ends, but its ticket is no longer known.
                    self.comparison = None;
                    self.preview = Some((ticket, plan));
                }
                Effect::StopPreview { .. } => self.preview = None,
                Effect::ListChanges { ticket, .. } => {
                    assert!(self.preview.is_none(), "files are compared while the check runs");
                    self.comparison = Some(ticket);
                }
                Effect::Run { .. } => panic!("the check runs without a copy"),
                Effect::Emit { kind: EventKind::ApprovalRequested(approval), .. } => self.approval = Some(approval.approval_id),
                Effect::Emit { kind: EventKind::ApprovalResolved { .. }, .. } => self.approval = None,
                _ => {}
            }
        }
        assert_eq!(self.machine.tasks.states().refused, 0, "{}", self.machine.tasks.states().refusal);
    }

    fn commit(&mut self, record: Record) {
        if let Record::OwnStarted { check: true, .. } = record {
            assert_eq!(self.open_checks(), 0, "a check starts while another is open");
        }
        self.journal.push(record);
        let checks = self.journal.iter().filter(|record| matches!(record, Record::OwnStarted { check: true, .. })).count();
        assert!(self.failures() as usize <= checks, "a check counts twice");
        assert!(self.failures() <= ROUNDS, "{} rounds", self.failures());
    }

    fn open_checks(&self) -> i32 {
        self.journal.iter().fold(0, |open, record| match record {
            Record::OwnStarted { check: true, .. } => open + 1,
            Record::OwnEnded { .. } => open - 1,
            _ => open,
        })
    }

    fn failures(&self) -> u32 {
        let failed = |record: &&Record| matches!(record, Record::GoalChanged { change: GoalChange::CheckFailed { .. } });
        self.journal.iter().filter(failed).count() as u32
    }

    /// Kills the process and reopens the session.
    fn crash(&mut self, unfinished: ResumePolicy) {
        (self.is_streaming, self.plan, self.preview, self.comparison, self.approval) = (false, None, None, None, None);
        self.machine = machine(Approver::User, 20);
        let _ = self.machine.begin_session();
        let at = self.at();
        let effects = self.machine.restore(self.journal.clone(), Vec::new(), unfinished, at);
        self.perform(effects);
    }

    /// Advances the work in progress. Returns whether there was any.
    fn advance(&mut self, how: u8) -> bool {
        if let Some(call) = self.plan.take() {
            self.give(Input::Planned(vec![PlanResult { index: 0, scope: Vec::new(), plan: Ok(exec(call)) }]));
        } else if let Some(approval_id) = self.approval.clone() {
            let decision = if how.is_multiple_of(4) { Decision::denied(None) } else { Decision::Approved };
            self.give(Input::Command(Command::Decide { approval_id, decision }));
        } else if let Some((ticket, mut plan)) = self.preview.take() {
            let code = [1, 1, 2, 127, 1][usize::from(how) % 5];
            let output = format!("Exit code: {code}\nfailed {}", how % 3);
            plan.effects = Some(Box::new(Effects { ended: format!("exit {code}"), output, ..Effects::default() }));
            self.give(Input::Previewed { index: 0, ticket, outcome: Ok(plan) });
        } else if let Some(ticket) = self.comparison.take() {
            let changes = ChangedFiles { files: vec![changed_file("a.c", u64::from(how % 2))], ..ChangedFiles::default() };
            self.give(Input::ChangesListed { ticket, changes: Some(changes), scripts: String::new() });
        } else if std::mem::take(&mut self.is_streaming) {
            let content = vec![Part::Text { text: "done".to_owned() }];
            let completion = Completion { content, stop_reason: StopReason::EndTurn, usage: Usage::default(), model: None };
            self.give(Input::Delta(Delta::Completed(completion)));
        } else {
            return false;
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn goals_never_run_two_checks_at_once_and_never_exceed_their_round_limit(
        happenings in prop::collection::vec(any::<[u8; 2]>(), 1..80),
    ) {
        let mut world = World::new();
        for [what, how] in happenings {
            match what % 16 {
                0 => world.give(Input::Command(Command::Cancel)),
                1 => world.give(Input::Command(Command::Continue)),
                2 => world.crash(ResumePolicy::Pause),
                3 => world.crash(ResumePolicy::Continue),
                4 => world.give(Input::Command(Command::Prompt { text: "and this".to_owned() })),
                5 => world.give(Input::Command(Command::SetGoalCheck { check: "make check".to_owned() })),
                6 if how == 0 => world.give(Input::Command(Command::StopGoal)),
                _ => {
                    world.advance(how);
                }
            }
        }
        // Without the user, the goal comes to an end because it is blocked, is paused, or has no rounds left.
        let mut steps = 0;
        while world.advance(1) {
            steps += 1;
            prop_assert!(steps < 200, "the goal never stops");
        }
        prop_assert!(world.machine.tasks.current().is_none() || world.machine.tasks.is_paused());
        let running = world.machine.goals.is_running();
        prop_assert!(!running, "the goal runs, and nothing happens");
    }
}
