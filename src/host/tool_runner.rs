//! Runs tools without a session. Each call is judged, approved, run and logged on its own.

use super::console::{warn, warn_all};
use super::context::AppContext;
use super::error::CliError;
use super::mcp_servers::McpServers;
use super::project::ProjectConfig;
use super::redaction::redactor;
use super::sandbox_host::SandboxHost;
use super::session;
use super::session_services::session_outbox;
use super::tool_name_lints::find_unmatched;
use crate::agent::{
    EffectsDecision, blocked_reason, decide_effects, is_by_mode, killed_error, layer_permit, plan_in_time, run_in_time,
};
use crate::host::options::Common;
use crate::policy::permit::Denial;
use crate::policy::{Enforcer, Permit, Preview, Question, Verdict};
use crate::ports::{Hooks, LayerRun, Plan, RunContext, ToolRouter};
use crate::protocol::{AskingAgent, Mode, PreviewOffer, SandboxAccess, SessionId, ToolCall, ToolError, ToolResult};
use crate::store::{LoggedDecision, SessionOutbox, Store};
use crate::sys::sandbox::abandoned_bases;
use crate::tools::{self, Router, ToolSources, Toolset};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time that a completed read waits for its log entry to be written.
const LOG_WAIT: Duration = Duration::from_secs(5);

/// Whether a call may start a program, in which case a sandbox is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    Nothing,
    Programs,
}

impl Starts {
    pub(crate) fn for_tool(tool_name: &str) -> Self {
        if tools::spawns_no_process(tool_name) { Self::Nothing } else { Self::Programs }
    }
}

/// Function that reports a notice, either on the console or, while a screen covers the console, in the log.
type Report = fn(&str);

/// Environment in which tools run, including what a trusted project adds, with the policy and the sandbox.
pub(crate) struct ToolEnvironment {
    pub app: AppContext,
    pub policy: Enforcer,
    pub standing: SandboxHost,
    report: Report,
}

impl ToolEnvironment {
    pub(crate) fn find(app: &AppContext, common: &Common, project: &ProjectConfig, starts: Starts) -> Result<Self, CliError> {
        let environment = Self::find_for_screen(app, common, project, starts)?;
        warn_all(&environment.app.tools.notices());
        Ok(Self { report: |notice| warn(notice), ..environment })
    }

    /// Finds the environment like `find`, but for a process with a screen: notices are written to the log.
    pub(crate) fn find_for_screen(
        app: &AppContext,
        common: &Common,
        project: &ProjectConfig,
        starts: Starts,
    ) -> Result<Self, CliError> {
        let policy = app.policy(common.policy.as_deref(), Some(project))?;
        policy.validate_for_session(None)?;
        let mut app = app.clone();
        app.with_tools_of(project);
        let standing = match starts {
            Starts::Programs => SandboxHost::find(&app, project.trust()),
            Starts::Nothing => SandboxHost::unprobed(&app),
        };
        let policy = standing.enforcer(&app, &policy);
        Ok(Self { app, policy, standing, report: |notice| tracing::warn!(notice, "notice of a tool") })
    }
}

/// Tools that are available under a policy.
pub(crate) struct ToolRunner {
    pub policy: Enforcer,
    pub router: Arc<Router>,
    log: DecisionLog,
    report: Report,
}

/// Decision log, and the fields that all of its entries have in common.
#[derive(Clone)]
struct DecisionLog {
    data: PathBuf,
    workspace: String,
    mode: Mode,
    /// Outbox, if decisions are sent to a service.
    outbox: Option<SessionOutbox>,
}

/// Verdict on a call that was not denied.
pub(crate) enum CallVerdict {
    Allowed(Plan, Permit),
    Asks(Plan, Question),
}

/// Returns a router for all tools under the policy.
fn router(app: &AppContext, policy: &Enforcer, sandbox: tools::SandboxPolicy, servers: Option<&McpServers>) -> Router {
    let mut settings = session::tool_settings(app, policy, sandbox);
    settings.session.checkpoints = Some(Arc::new(app.snapshots()));
    settings.session.artifacts = Some(Arc::new(app.artifacts(None)));
    let remote = servers.map(|servers| servers.offer(app, policy, &settings));
    Router::new(Toolset::new(settings, ToolSources { remote, ..session::tool_sources(app, policy) }))
}

/// Returns the hooks for a session in this environment, or for an agent that it started. Returns `None` if there are
/// none.
pub(crate) fn hooks_of(ground: &ToolEnvironment, agent: Option<AskingAgent>) -> Option<Arc<dyn Hooks>> {
    let ToolEnvironment { app, policy, standing, .. } = ground;
    let hooks = app.hooks.set().for_session()?;
    let hooks = match agent {
        Some(agent) => hooks.for_agent(agent, SessionId::new("")),
        None => hooks,
    };
    let mut settings = session::tool_settings(app, policy, standing.sandbox_policy(policy));
    settings.session.hooks = Some(hooks);
    Router::new(Toolset::new(settings, session::tool_sources(app, policy))).hooks()
}

impl ToolRunner {
    pub(crate) fn new(ground: ToolEnvironment, servers: Option<&McpServers>) -> Self {
        let ToolEnvironment { app, policy, standing, report } = ground;
        let router = Arc::new(router(&app, &policy, standing.sandbox_policy(&policy), servers));
        // Sessions recover their own interrupted work. Work of other dead processes is completed now.
        let recovered = router.recover(&abandoned_bases(&app.directories.data), &|_| false, &|_| false).notices;
        recovered.iter().chain(&find_unmatched(&app.tools.limits, &router)).for_each(|notice| report(notice));
        let log = DecisionLog {
            data: app.directories.data.clone(),
            workspace: app.workspace.display().to_string(),
            mode: app.mode,
            outbox: app.services.as_ref().and_then(|_| {
                let redactor = redactor(&app, policy.redactions(), &[]);
                session_outbox(&app, (&SessionId::new(""), ""), &[], &redactor)
            }),
        };
        Self { policy, router, log, report }
    }

    /// Returns an error if the policy disables the tool.
    pub(crate) fn offers(&self, name: &str) -> Result<(), ToolError> {
        // An unknown name is reported later, by planning.
        let Some(known) = self.router.full_name(name).or_else(|| tools::canonical_name(name).map(str::to_owned)) else {
            return Ok(());
        };
        self.policy.offers(&known).map_err(|denial| denial.to_error(""))
    }

    /// Judges a call under the policy. If the call is denied or cannot be planned, returns its result as an error.
    pub(crate) async fn judge(&self, call: ToolCall) -> Result<CallVerdict, Box<ToolResult>> {
        let (id, name) = (call.tool_call_id.clone(), call.tool_name.clone());
        let refused = |error| Box::new(ToolResult::from_error(id, name, error));
        // Check the policy before planning, so that the error for a disabled tool does not depend on the files.
        if let Err(error) = self.offers(&call.tool_name) {
            return Err(refused(error));
        }
        let plan = match self.plan(call).await {
            Ok(plan) => plan,
            Err(error) => return Err(refused(error)),
        };
        match plan.judge(&self.policy, jiff::Timestamp::now()) {
            Verdict::Allow(permit) => Ok(CallVerdict::Allowed(plan, permit)),
            Verdict::Ask(question) => Ok(CallVerdict::Asks(plan, question)),
            Verdict::Deny(denial) => Err(self.deny(plan, &denial).await),
        }
    }

    /// Logs a denial, and returns it as the result of the call.
    async fn deny(&self, plan: Plan, denial: &Denial) -> Box<ToolResult> {
        self.keep(&plan, "deny", &denial.rule, &denial.reason).await;
        let (id, name) = (plan.call.tool_call_id.clone(), plan.call.tool_name.clone());
        discard(plan).await;
        Box::new(ToolResult::from_error(id, name, denial.to_error("")))
    }

    /// If a command is approved by its effects, or only the mode allows it, runs it in a layer first and decides about
    /// its effects as a session does. The verdict then applies to these effects. Other calls do not run, and their
    /// verdict does not change. If the command was killed or is denied, returns its result as an error.
    pub(crate) async fn run_in_layer(
        &self,
        call: &ToolCall,
        judged: CallVerdict,
        context: RunContext,
    ) -> Result<CallVerdict, Box<ToolResult>> {
        let (plan, verdict) = match judged {
            CallVerdict::Allowed(plan, permit) => (plan, Verdict::Allow(permit)),
            CallVerdict::Asks(plan, question) => (plan, Verdict::Ask(question)),
        };
        let Some(permit) = layer_permit(&verdict, &plan, &self.policy) else {
            return match verdict {
                Verdict::Allow(permit) => Ok(CallVerdict::Allowed(plan, permit)),
                Verdict::Ask(question) => Ok(CallVerdict::Asks(plan, question)),
                Verdict::Deny(denial) => Err(self.deny(plan, &denial).await),
            };
        };
        let (hosts, kill) = (permit.hosts().to_vec(), context.kill.clone());
        match self.router.preview(plan, permit, context).await {
            Ok(plan) => self.decide_effects(call, plan, &hosts).await,
            Err(error) if kill.is_cancelled() => Err(failure(call, error)),
            Err(error) => self.ask_before(call, &error.message).await,
        }
    }

    /// Decides about the effects of a command that ran in a layer. `hosts` are the hosts to which it could connect.
    async fn decide_effects(&self, call: &ToolCall, plan: Plan, hosts: &[SandboxAccess]) -> Result<CallVerdict, Box<ToolResult>> {
        let now = jiff::Timestamp::now();
        let verdict = plan.judge(&self.policy, now);
        let (LayerRun::Ended(end), Some(effects)) = (&plan.layer, plan.effects.as_deref()) else {
            discard(plan).await;
            return self.ask_before(call, "the effects of the command are unknown").await;
        };
        if end.stopped && !matches!(verdict, Verdict::Deny(_)) {
            let mut killed = failure(call, killed_error(end, effects));
            killed.output_text.clone_from(&effects.output);
            killed.ended.clone_from(&end.ended);
            discard(plan).await;
            return Err(killed);
        }
        // Nobody can allow further access, so a command that the mode allows is complete.
        if !effects.denied.is_empty() && !is_by_mode(&verdict) && !matches!(verdict, Verdict::Deny(_)) {
            let reason = blocked_reason(hosts, effects);
            discard(plan).await;
            return self.ask_before(call, &reason).await;
        }
        let changes = effects.summary();
        let asks = match decide_effects(verdict, &self.policy, effects, end, now) {
            EffectsDecision::Apply(permit) | EffectsDecision::Allowed(permit) => return Ok(CallVerdict::Allowed(plan, permit)),
            EffectsDecision::Ask(question) => Ok(question),
            EffectsDecision::AskAnyway(reason) => self.policy.ask_call(&plan.tool_name, &plan.actions, now, reason),
            EffectsDecision::Deny(denial) => Err(denial),
        };
        match asks {
            Ok(mut question) => {
                question.reason = format!("{}: {changes}", question.reason);
                Ok(CallVerdict::Asks(plan, question))
            }
            Err(denial) => Err(self.deny(plan, &denial).await),
        }
    }

    /// Plans a command again once its layer is discarded. The command needs approval before it runs, for this reason.
    async fn ask_before(&self, call: &ToolCall, why: &str) -> Result<CallVerdict, Box<ToolResult>> {
        let plan = self.plan(call.clone()).await.map_err(|error| failure(call, error))?;
        let now = jiff::Timestamp::now();
        let asked = match plan.judge(&self.policy, now) {
            Verdict::Allow(_) => self.policy.ask_call(&plan.tool_name, &plan.actions, now, why.to_owned()),
            Verdict::Ask(mut question) => {
                question.reason = format!("{why}; {}", question.reason);
                Ok(question)
            }
            Verdict::Deny(denial) => Err(denial),
        };
        match asked {
            Ok(question) => Ok(CallVerdict::Asks(plan, question)),
            Err(denial) => Err(self.deny(plan, &denial).await),
        }
    }

    /// If the policy requires a preview before the approval and one is possible, runs the command in a preview and
    /// returns the plan that applies its effects. Otherwise returns `plan` unchanged.
    pub(crate) async fn run_preview(&self, plan: Plan, question: &Question, context: RunContext) -> Result<Plan, ToolError> {
        let always = self.policy.terms().preview == Some(Preview::Always);
        if !always || plan.preview != PreviewOffer::Possible || plan.effects.is_some() {
            return Ok(plan);
        }
        self.router.preview(plan, question.preview(), context).await
    }

    /// Judges a call again once it has been approved, because the policy may have become stricter in the meantime.
    pub(crate) async fn judge_approved(&self, plan: Plan, question: Question) -> Result<(Plan, Permit), ToolError> {
        match plan.judge(&self.policy, jiff::Timestamp::now()) {
            Verdict::Allow(_) | Verdict::Ask(_) => Ok((plan, question.approve())),
            Verdict::Deny(denial) => {
                self.keep(&plan, "deny", &denial.rule, &denial.reason).await;
                Err(denial.to_error(""))
            }
        }
    }

    /// Plans a call, with the same timeout as in a session.
    pub(crate) async fn plan(&self, call: ToolCall) -> Result<Plan, ToolError> {
        plan_in_time(self.router.clone(), call).await
    }

    /// Runs a call, with the same timeout as in a session. `by` is the approver, or `None` if a rule allowed the call.
    pub(crate) async fn run(&self, plan: Plan, permit: Permit, by: Option<&str>, context: RunContext) -> ToolResult {
        let reads = !plan.changes;
        let kept = self.keep(&plan, "allow", by.unwrap_or(permit.rule()), "");
        if !reads {
            kept.await;
            return run_in_time(self.router.clone(), plan, permit, context).await;
        }
        // The log is written in parallel, so that a read does not wait for another process that uses the store.
        let result = run_in_time(self.router.clone(), plan, permit, context).await;
        if tokio::time::timeout(LOG_WAIT, kept).await.is_err() {
            (self.report)("the session database is busy; the decision is logged as soon as it is free");
        }
        result
    }

    /// Logs a decision. If this fails, the failure is reported but the call continues. The store is created if it does
    /// not exist, so every decision is logged.
    pub(crate) fn keep(&self, plan: &Plan, verdict: &str, by: &str, reason: &str) -> impl Future<Output = ()> + Send + use<> {
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
        let (data, report, outbox) = (self.log.data.clone(), self.report, self.log.outbox.clone());
        let kept = tokio::task::spawn_blocking(move || {
            Store::open(&data).and_then(|store| {
                // Only the process that first opens a damaged store can report that it was moved aside.
                store.notices().iter().for_each(|notice| report(notice));
                store.log_decision(decision, outbox)
            })
        });
        async move {
            let why = match kept.await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            report(&format!("cannot log the decision: {why}"));
        }
    }
}

fn failure(call: &ToolCall, error: ToolError) -> Box<ToolResult> {
    Box::new(ToolResult::from_error(call.tool_call_id.clone(), call.tool_name.clone(), error))
}

/// Discards a plan. Removing its layer may take long.
async fn discard(plan: Plan) {
    // If the runtime is ending, the next start removes the layer.
    let _ = tokio::task::spawn_blocking(move || drop(plan)).await;
}
