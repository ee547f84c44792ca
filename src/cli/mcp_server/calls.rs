//! Tool calls from an MCP client. They are judged, approved if possible, and run in the same way as `aye tool call`.

use super::convert;
use super::convert::{OfferedTool, offers};
use super::elicitation;
use super::elicitation::{ClientAnswer, ElicitationSupport, PendingApprovals, PendingQuestion, drop_in_background, form};
use super::progress;
use super::scheduler::{Arrival, Scheduler};
use crate::agent::CHANNEL_DEPTH;
use crate::cli::mcp_server::ApprovalMode;
use crate::host::tool_runner::{CallVerdict, ToolRunner};
use crate::policy::redact::Redactor;
use crate::policy::{Permit, Question};
use crate::ports::{Artifacts, CallOrder, Plan, ProgressSender, RunContext, ToolRouter};
use crate::protocol::{Action, CallArguments, CallId, ErrorCode, NO_USER, ToolCall, ToolError, ToolResult, VerdictKind};
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorData, JsonObject, Tool};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Name of the client's user in the decision log.
const CLIENTS_PERSON: &str = "the client's user";

/// State shared by all calls from a client.
pub(crate) struct CallService {
    pub bench: ToolRunner,
    pub asks: ApprovalMode,
    /// Maximum time to wait for an approval.
    pub patience: Duration,
    pub redactor: Arc<Redactor>,
    pub artifacts: Arc<dyn Artifacts>,
    /// Token that is cancelled when all calls must end.
    pub end: CancellationToken,
    /// Determines the order of calls. The transport adds each call when its request arrives.
    pub scheduler: Arc<Scheduler>,
    offers: Vec<OfferedTool>,
    waiting: PendingApprovals,
    count: AtomicU64,
}

/// Next stage of a call: it runs with a permit, or it ends.
enum CallProgress {
    Runs { plan: Plan, permit: Permit, by: Option<&'static str> },
    Ends(End),
}

/// Outcome of a call: its result, or a form after which the client repeats the call.
enum End {
    Result(ToolResult),
    Question(CallToolResponse),
}

/// A call, as sent by the client.
struct ClientCall {
    call: ToolCall,
    arguments: Option<JsonObject>,
}

impl CallService {
    pub(crate) fn new(
        bench: ToolRunner,
        asks: ApprovalMode,
        patience: Duration,
        redactor: Arc<Redactor>,
        artifacts: Arc<dyn Artifacts>,
        end: CancellationToken,
    ) -> Self {
        let offers = offers(&bench);
        let (scheduler, waiting, count) = (Arc::default(), PendingApprovals::default(), AtomicU64::new(0));
        Self { bench, asks, patience, redactor, artifacts, end, scheduler, offers, waiting, count }
    }

    pub(crate) fn tools(&self) -> Vec<Tool> {
        self.offers.iter().map(|offer| offer.tool.clone()).collect()
    }

    /// Returns an error if no tool with this name is served. A tool is served even if the policy would deny calls to
    /// it.
    fn check_known(&self, name: &str) -> Result<(), ErrorData> {
        // Tool aliases are only for models, and their arguments are different.
        if self.bench.router.full_name(name).as_deref() == Some(name) && self.bench.router.details_for_client(name).is_some() {
            return Ok(());
        }
        let shown: String = name.chars().take(100).collect();
        Err(ErrorData::invalid_params(format!("unknown tool `{shown}`; `tools/list` lists the tools"), None))
    }

    pub(crate) async fn call(
        self: &Arc<Self>,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        self.check_known(&name)?;
        // This also cancels work that continues after the call.
        let kill = self.end.child_token();
        let answered = match request_state {
            Some(state) => {
                let answer = input_responses.as_ref().map_or(ClientAnswer::No, ClientAnswer::from_responses);
                let Some(waits) = self.waiting.take(&state, &name, arguments.as_ref()) else {
                    let words = "no approval is pending under this `requestState` for this call; repeat the call \
                        without `requestState`";
                    return Err(ErrorData::invalid_params(words, None));
                };
                Some((waits, answer))
            }
            None => None,
        };
        let id = CallId::new(format!("call_{}", self.count.fetch_add(1, Ordering::Relaxed) + 1));
        let given = within_limits(arguments.clone().unwrap_or_default());
        let made =
            ClientCall { call: ToolCall { tool_call_id: id, tool_name: name.clone().into_owned(), arguments: given }, arguments };
        let end = {
            let arrival = context.extensions.get::<Arrival>().cloned().unwrap_or_else(|| self.scheduler.arrive());
            let work = self.execute(made, &arrival, answered, &context, &kill);
            tokio::pin!(work);
            tokio::select! {
                end = &mut work => end?,
                () = context.ct.cancelled() => {
                    kill.cancel();
                    work.await?
                }
            }
        };
        match end {
            End::Question(response) => Ok(response),
            End::Result(result) => {
                let structured = self.offers.iter().any(|offer| offer.structured && offer.tool.name == name);
                Ok(convert::call_result(result, structured, Arc::clone(&self.artifacts)).await.into())
            }
        }
    }

    async fn execute(
        self: &Arc<Self>,
        made: ClientCall,
        arrival: &Arrival,
        answered: Option<(PendingQuestion, ClientAnswer)>,
        context: &RequestContext<RoleServer>,
        kill: &CancellationToken,
    ) -> Result<End, ErrorData> {
        let course = match answered {
            Some((PendingQuestion { plan, question, .. }, answer)) => {
                // The user has decided about this plan, so the call is not planned again.
                let waits = arrival.turn(CallOrder::for_plan(&plan, &[]));
                tokio::select! {
                    _ = waits => self.on_answer(&made.call, plan, question, answer).await,
                    () = kill.cancelled() => {
                        drop_in_background(plan);
                        return Ok(stopped_end(&made.call));
                    }
                }
            }
            None => self.evaluate(&made, arrival, context, kill).await?,
        };
        Ok(match course {
            CallProgress::Runs { plan, permit, by } => End::Result(self.run(&made.call, (plan, permit, by), context, kill).await),
            CallProgress::Ends(end) => end,
        })
    }

    /// Plans the call and judges it, as soon as no earlier call can affect the outcome.
    async fn judge_in_order(&self, call: &ToolCall, arrival: &Arrival) -> Result<CallVerdict, Box<ToolResult>> {
        let scope = self.bench.router.scope(call.clone()).await;
        arrival.turn(CallOrder::for_scope(&scope)).await;
        loop {
            let judged = self.bench.judge(call.clone()).await;
            let order = match &judged {
                Ok(CallVerdict::Allowed(plan, _) | CallVerdict::Asks(plan, _)) => CallOrder::for_plan(plan, &scope),
                Err(_) => CallOrder::for_failed(&scope),
            };
            if !arrival.turn(order).await {
                return judged;
            }
        }
    }

    /// Judges the call, and requests approval if it is needed.
    async fn evaluate(
        &self,
        made: &ClientCall,
        arrival: &Arrival,
        context: &RequestContext<RoleServer>,
        kill: &CancellationToken,
    ) -> Result<CallProgress, ErrorData> {
        let judged = tokio::select! {
            judged = self.judge_in_order(&made.call, arrival) => judged,
            () = kill.cancelled() => return Ok(CallProgress::Ends(stopped_end(&made.call))),
        };
        let judged = match judged {
            Ok(judged) => {
                let (output, _unwatched) = mpsc::channel(1);
                self.bench.run_in_layer(&made.call, judged, run_context(output, kill)).await
            }
            Err(refused) => Err(refused),
        };
        let (plan, question) = match judged {
            Ok(CallVerdict::Allowed(plan, permit)) => return Ok(CallProgress::Runs { plan, permit, by: None }),
            Ok(CallVerdict::Asks(plan, question)) => (plan, question),
            Err(refused) => return Ok(finish_with(*refused)),
        };
        let means = match self.asks {
            ApprovalMode::Nobody => ElicitationSupport::None,
            ApprovalMode::Client => ElicitationSupport::from_context(context),
        };
        if means == ElicitationSupport::None {
            return Ok(self.deny_without_approver(&made.call, plan, &question).await);
        }
        let (output, _unwatched) = mpsc::channel(1);
        let plan = match self.bench.run_preview(plan, &question, run_context(output, kill)).await {
            Ok(plan) => plan,
            Err(error) => return Ok(refuses(&made.call, error)),
        };
        let Some(form) = form(&plan, &question)? else {
            drop_in_background(plan);
            let message = "the command changes too many files to list them in an approval; split it up";
            return Ok(refuses(&made.call, ToolError::new(ErrorCode::NoApprover, message)));
        };
        if means == ElicitationSupport::Request {
            let answer = tokio::select! {
                answer = elicitation::ask(context, form, self.patience) => answer,
                () = kill.cancelled() => {
                    drop_in_background(plan);
                    return Ok(CallProgress::Ends(stopped_end(&made.call)));
                }
            };
            return Ok(self.on_answer(&made.call, plan, question, answer).await);
        }
        let of = (made.call.tool_name.clone(), made.arguments.clone());
        Ok(match self.waiting.keep(of, (plan, question), form, self.patience) {
            Ok(asked) => CallProgress::Ends(End::Question(asked.into())),
            Err(plan) => {
                drop_in_background(plan);
                let message = "too many approvals are pending; answer one of them and call again";
                refuses(&made.call, ToolError::new(ErrorCode::NoApprover, message))
            }
        })
    }

    /// Handles the user's answer to an approval prompt. If the call was approved, judges it again, because
    /// circumstances may have changed in the meantime.
    async fn on_answer(&self, call: &ToolCall, plan: Plan, question: Question, answer: ClientAnswer) -> CallProgress {
        if answer == ClientAnswer::No {
            self.bench.keep(&plan, "deny", CLIENTS_PERSON, &question.reason).await;
            drop_in_background(plan);
            let message = "the client's user did not approve the call; ask the user what to do instead";
            return refuses(call, ToolError::new(ErrorCode::UserDenied, message));
        }
        match self.bench.judge_approved(plan, question).await {
            Ok((plan, permit)) => CallProgress::Runs { plan, permit, by: Some(CLIENTS_PERSON) },
            Err(error) => refuses(call, error),
        }
    }

    async fn deny_without_approver(&self, call: &ToolCall, plan: Plan, question: &Question) -> CallProgress {
        self.bench.keep(&plan, "deny", NO_USER, &question.reason).await;
        let asks = match self.asks {
            ApprovalMode::Nobody => {
                "this server does not ask for approval (start it with `--ask client` to ask the client's user)"
            }
            ApprovalMode::Client => "the client cannot show a form to the user (elicitation)",
        };
        let now = jiff::Timestamp::now();
        let asks_for =
            |action: &&Action| self.bench.policy.explain(std::slice::from_ref(*action), now).verdict == VerdictKind::Ask;
        let rule = plan.actions.iter().find(asks_for).and_then(allow_hint).map_or_else(String::new, |words| format!(". {words}"));
        let message = format!("approval required ({}; rule: {}), and {asks}{rule}", question.reason, question.rule);
        drop_in_background(plan);
        refuses(call, ToolError::new(ErrorCode::NoApprover, message))
    }

    async fn run(
        self: &Arc<Self>,
        call: &ToolCall,
        (plan, permit, by): (Plan, Permit, Option<&'static str>),
        context: &RequestContext<RoleServer>,
        kill: &CancellationToken,
    ) -> ToolResult {
        let (id, name, changes) = (call.tool_call_id.clone(), call.tool_name.clone(), plan.changes);
        let (output, chunks) = mpsc::channel(CHANNEL_DEPTH);
        let teller = context
            .meta
            .get_progress_token()
            .map(|token| tokio::spawn(progress::send_progress(chunks, Arc::clone(&self.redactor), context.peer.clone(), token)));
        let (calls, running) = (Arc::clone(self), run_context(output, kill));
        let mut work = tokio::spawn(async move { calls.bench.run(plan, permit, by, running).await });
        let done = if changes {
            work.await
        } else {
            tokio::select! {
                done = &mut work => done,
                // The call changes nothing, so there is no need to wait for its end.
                () = kill.cancelled() => return stopped_result(call),
            }
        };
        if let Some(teller) = teller {
            // Progress notifications must not follow the result.
            teller.abort();
        }
        done.unwrap_or_else(|error| {
            let code = if changes { ErrorCode::OutcomeUnknown } else { ErrorCode::ToolExecutionFailed };
            ToolResult::from_error(id, name, ToolError::new(code, format!("the tool ended with an internal error: {error}")))
        })
    }

    /// Ends all calls, background commands and pending approvals.
    pub(crate) async fn shut_down(&self) {
        self.end.cancel();
        self.bench.router.end_commands().await;
        let waits = self.waiting.end();
        let _ = tokio::task::spawn_blocking(move || drop(waits)).await;
    }
}

/// Returns a hint about the policy entry that would allow the action without approval, or `None` if there is no such
/// entry.
fn allow_hint(action: &Action) -> Option<String> {
    let capability = match action {
        Action::Read { .. } | Action::Write { .. } | Action::Delete { .. } | Action::Exec { .. } => action.capability(),
        Action::Custom { .. } => "Tool.Custom",
        Action::Fetch { .. } => {
            let words = "With `requires_approval = false`, [capabilities.\"Network.Http\"] in the policy allows it \
                without approval";
            return Some(words.to_owned());
        }
        Action::Search { .. } => action.capability(),
        Action::Open { .. } | Action::Upload { .. } | Action::Named { .. } | Action::Invoke { .. } => return None,
    };
    Some(format!(
        "A rule of [capabilities.\"{capability}\"] with `decision = \"allow\"` in the policy allows it without approval"
    ))
}

/// Converts the arguments of a call. If they exceed the limits that apply in a session, marks them as malformed, which
/// prevents the call from running.
fn within_limits(arguments: JsonObject) -> CallArguments {
    let json = Value::Object(arguments);
    match (CallArguments::describe_exceeded_limit(&json.to_string()), json) {
        (None, Value::Object(arguments)) => CallArguments::Object(arguments),
        (limit, _) => CallArguments::over_limit("", &limit.unwrap_or_default()),
    }
}

fn run_context(output: mpsc::Sender<String>, kill: &CancellationToken) -> RunContext {
    RunContext {
        tool_call_id: None,
        output,
        progress: ProgressSender::default(),
        kill: kill.clone(),
        interrupt: kill.child_token(),
        background: CancellationToken::new(),
        max_bytes: convert::TEXT_BYTES,
    }
}

fn refuses(call: &ToolCall, error: ToolError) -> CallProgress {
    finish_with(ToolResult::from_error(call.tool_call_id.clone(), &call.tool_name, error))
}

fn finish_with(result: ToolResult) -> CallProgress {
    CallProgress::Ends(End::Result(result))
}

fn stopped_result(call: &ToolCall) -> ToolResult {
    let error = ToolError::new(ErrorCode::Cancelled, "the call was cancelled before it completed");
    ToolResult::from_error(call.tool_call_id.clone(), &call.tool_name, error)
}

fn stopped_end(call: &ToolCall) -> End {
    End::Result(stopped_result(call))
}
