//! The tools without a session: one call at a time is judged, asked about and run, and what was decided is written down.

use super::cli::Common;
use super::misnamed::unmatched;
use super::place::Place;
use super::project::Brought;
use super::servers::Servers;
use super::session;
use super::standing::Standing;
use super::trouble::Trouble;
use crate::agent::{plan_in_time, run_in_time};
use crate::policy::permit::Denial;
use crate::policy::{Enforcer, Permit, Preview, Question, Verdict};
use crate::ports::{Plan, RunContext, ToolRouter};
use crate::protocol::{ErrorCode, Mode, PreviewOffer, ToolCall, ToolError, ToolResult};
use crate::store::{LoggedDecision, Store};
use crate::sys::sandbox::left_bases;
use crate::tools::{self, Router};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a read that is done waits for its decision to be in the log.
const LOG_WAIT: Duration = Duration::from_secs(5);

/// Whether what is called could start a program, which has to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    Nothing,
    Programs,
}

impl Starts {
    pub fn of(tool_name: &str) -> Self {
        if tools::starts_nothing(tool_name) { Self::Nothing } else { Self::Programs }
    }
}

/// Where the tools stand: the place with what a trusted project brings, the policy over it, and what holds commands.
pub struct Ground {
    pub place: Place,
    pub policy: Enforcer,
    pub standing: Standing,
}

impl Ground {
    pub fn find(place: &Place, common: &Common, project: &Brought, starts: Starts) -> Result<Self, Trouble> {
        let policy = place.policy(common.policy.as_deref(), Some(project))?;
        policy.holds_for(None)?;
        let mut place = place.clone();
        place.with_tools_of(project);
        place.tools.notices().iter().for_each(|problem| super::warn(problem));
        let standing = match starts {
            Starts::Programs => Standing::find(&place, project.trust()),
            Starts::Nothing => Standing::unasked(&place),
        };
        let policy = place.enforcer(&policy, standing.sandbox(), place.mode);
        Ok(Self { place, policy, standing })
    }
}

/// The tools under their policy.
pub struct Bench {
    pub policy: Enforcer,
    pub router: Arc<Router>,
    log: Log,
}

/// Where decisions are kept, and what they have in common.
#[derive(Clone)]
struct Log {
    data: PathBuf,
    workspace: String,
    mode: Mode,
}

/// What may come of a call that was not denied.
pub enum Judged {
    Allowed(Plan, Permit),
    Asks(Plan, Question),
}

/// The tools as the policy has them, all offered.
fn router(place: &Place, policy: &Enforcer, holding: tools::Holding, servers: Option<&Servers>) -> Router {
    let settings = tools::Settings {
        checkpoints: Some(Arc::new(place.snapshots())),
        artifacts: Some(Arc::new(place.artifacts(None))),
        ..session::tool_settings(place, policy, holding)
    };
    Router::new(match servers {
        Some(servers) => servers.offer(place, policy, settings),
        None => settings,
    })
}

impl Bench {
    pub fn new(ground: Ground, servers: Option<&Servers>) -> Self {
        let Ground { place, policy, standing } = ground;
        let router = Arc::new(router(&place, &policy, standing.holding(&policy), servers));
        // Those of sessions wait for them; what else a dead process began is finished now.
        router.recover(&left_bases(&place.directories.data), &|_| false).notices.iter().for_each(|notice| super::warn(notice));
        for notice in unmatched(&place.tools.limits, &router) {
            super::warn(&notice);
        }
        let log =
            Log { data: place.directories.data.clone(), workspace: place.workspace.display().to_string(), mode: place.mode };
        Self { policy, router, log }
    }

    /// Whether the tool of this name may be used at all.
    pub fn offers(&self, name: &str) -> Result<(), ToolError> {
        // A name that no tool has is denied by nobody: planning says that there is no such tool.
        let Some(known) = self.router.full_name(name).or_else(|| tools::name_of(name)) else { return Ok(()) };
        self.policy.offers(known).map_err(|denial| denied(&denial))
    }

    /// What the policy says of the call. One that is denied, or that cannot be planned, has its result already.
    pub async fn judged(&self, call: ToolCall) -> Result<Judged, Box<ToolResult>> {
        let (id, name) = (call.tool_call_id.clone(), call.tool_name.clone());
        let refused = |error| Box::new(ToolResult::refused(id, name, error));
        // Before the plan: why a tool cannot be used may not depend on what it would find.
        if let Err(error) = self.offers(&call.tool_name) {
            return Err(refused(error));
        }
        let plan = match self.plan(call).await {
            Ok(plan) => plan,
            Err(error) => return Err(refused(error)),
        };
        match plan.judged(&self.policy, jiff::Timestamp::now()) {
            Verdict::Allow(permit) => Ok(Judged::Allowed(plan, permit)),
            Verdict::Ask(question) => Ok(Judged::Asks(plan, question)),
            Verdict::Deny(denial) => {
                self.keep(&plan, "deny", &denial.rule, &denial.reason).await;
                Err(refused(denied(&denial)))
            }
        }
    }

    /// The plan that keeps what the command did in a view of its own, where the policy wants that before every question.
    pub async fn looked_at(&self, plan: Plan, question: &Question, context: RunContext) -> Result<Plan, ToolError> {
        let always = self.policy.terms().preview == Some(Preview::Always);
        if !always || plan.preview != PreviewOffer::Possible {
            return Ok(plan);
        }
        self.router.preview(plan, question.preview(), context).await
    }

    /// The permit of a yes that came later than its question: the policy may let less happen by now.
    pub async fn judged_again(&self, plan: Plan, question: Question) -> Result<(Plan, Permit), ToolError> {
        match plan.judged(&self.policy, jiff::Timestamp::now()) {
            Verdict::Allow(_) | Verdict::Ask(_) => Ok((plan, question.approve())),
            Verdict::Deny(denial) => {
                self.keep(&plan, "deny", &denial.rule, &denial.reason).await;
                Err(denied(&denial))
            }
        }
    }

    /// Plans a call in the time that a session gives it.
    pub async fn plan(&self, call: ToolCall) -> Result<Plan, ToolError> {
        plan_in_time(self.router.clone(), call).await
    }

    /// Runs a call in the time that a session gives it. `by` is who approved it; none where a rule did.
    pub async fn run(&self, plan: Plan, permit: Permit, by: Option<&str>, context: RunContext) -> ToolResult {
        let reads = !plan.changes;
        let kept = self.keep(&plan, "allow", by.unwrap_or(permit.rule()), "");
        if !reads {
            kept.await;
            return run_in_time(self.router.clone(), plan, permit, context).await;
        }
        // The log is written meanwhile: what only reads waits for no other process that has the store.
        let result = run_in_time(self.router.clone(), plan, permit, context).await;
        if tokio::time::timeout(LOG_WAIT, kept).await.is_err() {
            super::warn("the session database is busy; the decision is logged as soon as it is free");
        }
        result
    }

    /// A log that cannot be written is said and stops nothing: the person asked for the call, not for the log. Where there is no
    /// store yet one is made, so that no decision is missing from the log.
    pub fn keep(&self, plan: &Plan, verdict: &str, by: &str, reason: &str) -> impl Future<Output = ()> + Send + use<> {
        let decision = LoggedDecision {
            time: jiff::Timestamp::now(),
            session_id: None,
            workspace: self.log.workspace.clone(),
            tool_name: plan.tool_name.clone(),
            summary: plan.summary.clone(),
            verdict: verdict.to_owned(),
            by: by.to_owned(),
            reason: reason.to_owned(),
            mode: self.log.mode.as_str().to_owned(),
        };
        let data = self.log.data.clone();
        let kept = tokio::task::spawn_blocking(move || {
            Store::open(&data).and_then(|store| {
                // Who opens it first after it was damaged is the only one to learn that it was moved.
                store.notices().iter().for_each(|notice| super::warn(notice));
                store.log_decision(decision)
            })
        });
        async move {
            let why = match kept.await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            super::warn(&format!("cannot log the decision: {why}"));
        }
    }
}

/// What a denial is to whoever called.
pub fn denied(denial: &Denial) -> ToolError {
    ToolError::new(ErrorCode::PolicyDenied, format!("{} (rule: {})", denial.reason, denial.rule))
}
