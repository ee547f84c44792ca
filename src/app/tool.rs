//! `aye tool`: the tools one by one, through the policy like every call.

use super::cli::{Answers, Common};
use super::exit::Exit;
use super::mcp::specs;
use super::place::Place;
use super::project::Brought;
use super::servers::{self, Connected, FIRST_WAIT, Servers};
use super::session;
use super::standing::Standing;
use super::trouble::Trouble;
use crate::mcp::Spec;
use crate::policy::permit::Denial;
use crate::policy::{Enforcer, Permit, Preview, PreviewPermit, Question, Verdict};
use crate::ports::{Plan, RunContext, ToolRouter};
use crate::protocol::{
    Arguments, CallId, Effects, ErrorCode, PreviewOffer, Proposal, ToolCall, ToolError, ToolResult, ToolStatus,
};
use crate::store::{LoggedDecision, Store};
use crate::sys::sandbox::left_bases;
use crate::tools::{self, Router};
use serde::Serialize;
use std::io::{IsTerminal, Read};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const ARGUMENT_BYTES: u64 = 64 << 20;
/// Nobody watches the live output; what does not fit is in the result all the same.
const OUTPUT_DEPTH: usize = 1;

struct Bench {
    policy: Enforcer,
    router: Router,
    log: Log,
    runtime: Runtime,
    /// Those whose tools are among the others.
    servers: Option<Servers>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(servers) = &self.servers {
            self.runtime.block_on(servers.end());
        }
    }
}

/// Where decisions are kept, and what they have in common.
struct Log {
    data: std::path::PathBuf,
    workspace: String,
    mode: crate::protocol::Mode,
}

impl Log {
    /// A log that cannot be written is said and stops nothing: the person asked for the call, not for the log. Where there is no
    /// store yet one is made, so that no decision is missing from the log.
    fn keep(&self, plan: &Plan, verdict: &str, by: &str, reason: &str) {
        let decision = LoggedDecision {
            time: jiff::Timestamp::now(),
            session_id: None,
            workspace: self.workspace.clone(),
            tool_name: plan.tool_name.clone(),
            summary: plan.summary.clone(),
            verdict: verdict.to_owned(),
            by: by.to_owned(),
            reason: reason.to_owned(),
            mode: self.mode.as_str().to_owned(),
        };
        let kept = Store::open(&self.data).and_then(|store| {
            // Who opens it first after it was damaged is the only one to learn that it was moved.
            store.notices().iter().for_each(|notice| super::warn(notice));
            store.log_decision(decision)
        });
        if let Err(error) = kept {
            super::warn(&format!("the decision is not in the log: {error}"));
        }
    }
}

/// Whether what is called could start a program, which has to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starts {
    Nothing,
    Programs,
}

impl Starts {
    fn of(tool_name: &str) -> Self {
        if tools::starts_nothing(tool_name) { Self::Nothing } else { Self::Programs }
    }
}

/// Whether tools of servers are asked for: not where a name means a built-in one.
fn asks_servers(name: Option<&str>) -> bool {
    name.is_none_or(|name| tools::name_of(name).is_none())
}

/// `name` is the tool that it is about; none for all of them.
fn bench(place: &Place, common: &Common, starts: Starts, name: Option<&str>) -> Result<Bench, Trouble> {
    let project = Brought::look(place, common.trust);
    project.ignored_policy().iter().for_each(|line| super::warn(line));
    let policy = place.policy(common.policy.as_deref(), Some(&project))?;
    policy.holds_for(None)?;
    let mut place = place.clone();
    place.with_tools_of(&project);
    let place = &place;
    place.tools.problems.iter().for_each(|problem| super::warn(problem));
    let found = asks_servers(name).then(|| specs(place, Some(&project))).filter(|(specs, _)| !specs.is_empty());
    let standing = match starts {
        // A server may be a program.
        Starts::Nothing if found.is_some() => Standing::find(place, !project.waits()),
        Starts::Programs => Standing::find(place, !project.waits()),
        Starts::Nothing => Standing::unasked(place),
    };
    let policy = place.enforcer(&policy, standing.sandbox(), place.mode);
    let runtime = super::runtime()?;
    let servers = found.and_then(|found| connect(place, found, &policy, &standing, &runtime));
    let router = session::router(place, &policy, standing.holding(&policy), servers.as_ref());
    // Those of sessions wait for them; what else a dead process began is finished now.
    router.recover(&left_bases(&place.directories.data), &|_| false).notices.iter().for_each(|notice| super::warn(notice));
    let log = Log { data: place.directories.data.clone(), workspace: place.workspace.display().to_string(), mode: place.mode };
    Ok(Bench { policy, router, log, runtime, servers })
}

/// The servers, once those that were never asked had the time to say what they offer.
fn connect(
    place: &Place,
    found: (Vec<Spec>, Vec<String>),
    policy: &Enforcer,
    standing: &Standing,
    runtime: &Runtime,
) -> Option<Servers> {
    let settings = || session::tool_settings(place, policy, standing.holding(policy));
    let Connected { servers, problems, .. } = servers::connect(place, found, policy, settings, false)?;
    for problem in problems {
        super::warn(&problem);
    }
    runtime.block_on(servers.settle(FIRST_WAIT)).iter().for_each(|line| super::warn(line));
    Some(servers)
}

pub fn list(place: &Place, common: &Common, json: bool) -> Result<Exit, Trouble> {
    let bench = bench(place, common, Starts::Nothing, None)?;
    let tools = session::offered(&bench.router, &bench.policy);
    if json {
        super::say_json(&tools);
        return Ok(Exit::Completed);
    }
    for tool in tools {
        let capability = bench.router.capability(&tool.tool_name).unwrap_or_default();
        // All of it is what `aye tool schema` prints.
        let line = tool.description.lines().next().unwrap_or_default();
        let first = line.split_inclusive(". ").next().unwrap_or_default().trim_end();
        super::say(&format!("{:14} {:12} {first}\n", tool.tool_name, capability));
    }
    Ok(Exit::Completed)
}

pub fn schema(place: &Place, common: &Common, name: &str) -> Result<Exit, Trouble> {
    let bench = bench(place, common, Starts::Nothing, Some(name))?;
    let tool = bench.router.definition(name).map_err(|error| Trouble::usage(error.message))?;
    super::say_json(&tool);
    Ok(Exit::Completed)
}

/// What a call would do.
#[derive(Serialize)]
struct Foretold {
    #[serde(flatten)]
    proposal: Proposal,
    /// What a command did in a view of its own, which is gone by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<Box<Effects>>,
}

/// Prints what a call would do, and does nothing.
pub fn plan(place: &Place, common: &Common, name: &str, arguments: &str) -> Result<Exit, Trouble> {
    let bench = bench(place, common, Starts::of(name), Some(name))?;
    let call = tool_call(name, arguments)?;
    if let Err(error) = bench.offers(name) {
        return Ok(report(&ToolResult::refused(call.tool_call_id, name, error), true));
    }
    let plan = match bench.runtime.block_on(bench.router.plan(call.clone())) {
        Ok(plan) => plan,
        Err(error) => return Ok(report(&ToolResult::refused(call.tool_call_id, name, error), true)),
    };
    let permit = match bench.policy.judge(&plan.actions, jiff::Timestamp::now()) {
        Verdict::Allow(permit) => permit.preview(),
        // Nothing of it is kept, so nobody has to be asked.
        Verdict::Ask(question) => question.preview(),
        Verdict::Deny(denial) => {
            let error = ToolError::new(ErrorCode::PolicyDenied, format!("{} (rule: {})", denial.reason, denial.rule));
            return Ok(report(&ToolResult::refused(call.tool_call_id, name, error), true));
        }
    };
    super::say_json(&bench.runtime.block_on(bench.foretell(plan, permit)));
    Ok(Exit::Completed)
}

pub fn call(place: &Place, common: &Common, name: &str, arguments: &str, json: bool, answers: Answers) -> Result<Exit, Trouble> {
    let bench = bench(place, common, Starts::of(name), Some(name))?;
    let call = tool_call(name, arguments)?;
    let result = bench.runtime.block_on(bench.carry_out(call, answers));
    Ok(report(&result, json))
}

impl Bench {
    fn offers(&self, name: &str) -> Result<(), ToolError> {
        let refused =
            |denial: Denial| ToolError::new(ErrorCode::PolicyDenied, format!("{} (rule: {})", denial.reason, denial.rule));
        let known = tools::name_of(name).or_else(|| self.router.full_name(name)).unwrap_or(name);
        self.policy.offers(known).map_err(refused)
    }

    async fn foretell(&self, plan: Plan, permit: PreviewPermit) -> Foretold {
        let summary = plan.summary.clone();
        let mut proposal = plan.proposal.clone().unwrap_or_else(|| Proposal { summary, ..Proposal::default() });
        match &plan.preview {
            PreviewOffer::None => return Foretold { proposal, effects: None },
            PreviewOffer::Possible => {}
            PreviewOffer::Impossible { reason } => {
                proposal.notes.push(format!("no preview: {reason}"));
                return Foretold { proposal, effects: None };
            }
        }
        match self.router.preview(plan, permit, unwatched()).await {
            Ok(mut plan) => {
                let effects = plan.effects.take();
                let proposal = plan.proposal.take().unwrap_or(proposal);
                // It may take long to remove, which is not left to the next start.
                let _ = tokio::task::spawn_blocking(move || drop(plan)).await;
                Foretold { proposal, effects }
            }
            Err(error) => {
                proposal.notes.push(format!("no preview: {}", error.message));
                Foretold { proposal, effects: None }
            }
        }
    }

    /// The plan that keeps what the command did in a view of its own, where the policy wants that before every question.
    async fn previewed(&self, plan: Plan, question: Question) -> Result<(Plan, Permit), ToolError> {
        let always = self.policy.terms().preview == Some(Preview::Always);
        if !always || plan.preview != PreviewOffer::Possible {
            return Ok((plan, question.approve()));
        }
        let plan = self.router.preview(plan, question.preview(), unwatched()).await?;
        Ok((plan, question.approve()))
    }

    async fn carry_out(&self, call: ToolCall, answers: Answers) -> ToolResult {
        let (id, name) = (call.tool_call_id.clone(), call.tool_name.clone());
        // Before the plan: why a tool cannot be used may not depend on what it would find.
        if let Err(error) = self.offers(&name) {
            return ToolResult::refused(id, name, error);
        }
        let plan = match self.router.plan(call).await {
            Ok(plan) => plan,
            Err(error) => return ToolResult::refused(id, name, error),
        };
        let (plan, permit) = match self.policy.judge(&plan.actions, jiff::Timestamp::now()) {
            Verdict::Allow(permit) => (plan, permit),
            Verdict::Ask(question) if answers == Answers::Yes => match self.previewed(plan, question).await {
                Ok(previewed) => previewed,
                Err(error) => return ToolResult::refused(id, name, error),
            },
            Verdict::Ask(question) => {
                self.log.keep(&plan, "deny", "no one to ask", &question.reason);
                let message = format!("the policy asks ({}; rule: {}); --yes says yes to it", question.reason, question.rule);
                return ToolResult::refused(id, name, ToolError::new(ErrorCode::NoApprover, message));
            }
            Verdict::Deny(denial) => {
                self.log.keep(&plan, "deny", &denial.rule, &denial.reason);
                let message = format!("{} (rule: {})", denial.reason, denial.rule);
                return ToolResult::refused(id, name, ToolError::new(ErrorCode::PolicyDenied, message));
            }
        };
        let by = if permit.rule() == "approved by you" { "you" } else { permit.rule() };
        self.log.keep(&plan, "allow", by, "");
        self.router.run(plan, permit, unwatched()).await
    }
}

fn unwatched() -> RunContext {
    let (output, _unwatched) = mpsc::channel(OUTPUT_DEPTH);
    RunContext { tool_call_id: None, output, kill: CancellationToken::new(), background: CancellationToken::new() }
}

fn report(result: &ToolResult, json: bool) -> Exit {
    if json {
        super::say_json(result);
    } else if std::io::stdout().is_terminal() {
        super::say(&(crate::text::clean(&result.text_for_model()).into_owned() + "\n"));
    } else {
        super::say(&(result.text_for_model() + "\n"));
    }
    if result.status == ToolStatus::Succeeded { Exit::Completed } else { Exit::Failed }
}

pub fn tool_call(name: &str, arguments: &str) -> Result<ToolCall, Trouble> {
    let text = match arguments.strip_prefix('@') {
        Some(path) => read(std::fs::File::open(path), path)?,
        None if arguments == "-" => read(Ok(std::io::stdin()), "stdin")?,
        None => arguments.to_owned(),
    };
    Ok(ToolCall { tool_call_id: CallId::new("call_1"), tool_name: name.to_owned(), arguments: Arguments::parse(&text) })
}

fn read(source: std::io::Result<impl Read>, name: &str) -> Result<String, Trouble> {
    let mut text = String::new();
    source
        .and_then(|source| source.take(ARGUMENT_BYTES).read_to_string(&mut text))
        .map_err(|error| Trouble::usage(format!("--args: cannot read `{name}`: {error}")))?;
    Ok(text)
}
