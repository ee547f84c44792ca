//! A tool of an MCP server. Using exactly this tool is what the policy checks, and the call is sent exactly as shown.
//! The result is labelled with its origin.

use super::answer::{Offer, SUMMARY_CHARS, convert_result, single_line};
use super::pins::{PinState, Pins};
use super::schema::{self, CompiledSchema, Fit};
use crate::ports::{BoxFuture, RemoteCall, RemoteContext, RemoteError, RemoteServers, RemoteTool, RunContext};
use crate::protocol::{Action, BACKEND_SERVER, ErrorCode, Proposal, ToolError};
use crate::text::{clean, reveal_name};
use crate::tools::call_result::{CallResult, ToolFailure, blocking};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::{AnyTool, Payload};
use futures_util::FutureExt;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const CAPABILITY: &str = "Mcp.Invoke";
const BACKEND: &str = "BackendTool.Invoke";
/// Maximum number of characters in a tool's description, limited because it is part of every request.
const DESCRIPTION_CHARS: usize = 4096;

const VALUE_CHARS: usize = 60;
const ERROR_CHARS: usize = 2000;

/// Access to the servers and the stored definitions, shared by all tools.
pub(super) struct CallDeps {
    pub servers: Arc<dyn RemoteServers>,
    /// Approved definitions, or `None` if they are not stored.
    pub pins: Option<Pins>,
    pub timeout: super::Timeout,
}

pub(in crate::tools) struct ServerTool {
    offer: Arc<Offer>,
    wires: Arc<CallDeps>,
    /// Name used in policies, such as `Mcp.docs/search`.
    name: String,
    /// Name that the model sees, such as `docs__search`.
    offered: String,
    description: OnceLock<String>,
    /// Reason why the policy does not list the tool, or `None` if it does.
    pub(super) unlisted: Option<String>,
}

struct Work {
    offer: Arc<Offer>,
    wires: Arc<CallDeps>,
    arguments: Map<String, Value>,
    timeout: Duration,
    /// Whether this definition has already been approved.
    is_pinned: bool,
}

/// Formats arguments for the user, one per line: `title: Bug in f5`. A string of several lines is indented below its
/// name, and nested values are compact JSON. The first character of a line shows that it names an argument, because
/// the lines of a string are indented.
fn describe_arguments(arguments: &Map<String, Value>) -> String {
    if arguments.is_empty() {
        return "no arguments".to_owned();
    }
    let describe = |(name, value): (&String, &Value)| {
        let name = reveal_name(name);
        match value {
            Value::String(text) if text.trim_end_matches('\n').contains('\n') => {
                let lines: String = text.split('\n').flat_map(|line| ["\n  ", line]).collect();
                format!("{name}:{lines}")
            }
            Value::String(text) if is_plain(text) => format!("{name}: {text}"),
            other => format!("{name}: {other}"),
        }
    };
    arguments.iter().map(describe).collect::<Vec<_>>().join("\n")
}

/// Returns whether a string is unambiguous without quotes: it does not look like another JSON value, and has no line
/// breaks or surrounding spaces.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains('\n') && serde_json::from_str::<Value>(text).is_err()
}

/// Returns a tool's name in the form used in policies.
pub(in crate::tools) fn full_name(server: &str, tool: &str) -> String {
    format!("Mcp.{server}/{tool}")
}

impl ServerTool {
    pub(super) fn new(
        tool: RemoteTool,
        offered: String,
        reached_by: String,
        wires: Arc<CallDeps>,
        unlisted: Option<String>,
    ) -> Self {
        let name = full_name(&tool.server, &tool.name);
        let offer = Offer { tool, reached_by, input: CompiledSchema::default(), output: CompiledSchema::default() };
        Self { offer: Arc::new(offer), wires, name, offered, description: OnceLock::new(), unlisted }
    }

    pub(in crate::tools) fn tool(&self) -> &RemoteTool {
        &self.offer.tool
    }

    /// Returns the approximate number of bytes that the tool adds to each request.
    pub(super) fn weight(&self) -> usize {
        self.offered.len() + self.tool().description.len().min(DESCRIPTION_CHARS) + self.tool().input_schema.to_string().len()
    }

    fn is_backend(&self) -> bool {
        self.tool().server == BACKEND_SERVER
    }

    fn pin_state(&self) -> PinState {
        self.wires.pins.as_ref().map_or(PinState::New, |pins| pins.compare(self.tool()))
    }

    fn action(&self, known: &PinState) -> Action {
        let RemoteTool { server, name, fingerprint, .. } = self.tool();
        Action::Invoke {
            server: server.clone(),
            tool: name.clone(),
            fingerprint: fingerprint.clone(),
            changed: matches!(known, PinState::Changed(_)),
        }
    }

    /// Formats a call, for example as `docs/search query="x" limit=3`.
    fn summary(&self, arguments: &Map<String, Value>) -> String {
        let mut line = self.offer.plain_name();
        for (name, value) in arguments {
            if line.chars().count() > SUMMARY_CHARS {
                line.push_str(" …");
                break;
            }
            line.extend([" ", &single_line(name, VALUE_CHARS), "=", &single_line(&value.to_string(), VALUE_CHARS)]);
        }
        line
    }

    /// Returns the title of the approval prompt, such as `Call create_issue on fs`.
    fn title(&self) -> String {
        let RemoteTool { server, name, .. } = self.tool();
        let name = single_line(name, SUMMARY_CHARS);
        if self.is_backend() {
            format!("Call the back-end tool {name}")
        } else {
            format!("Call {name} on {}", single_line(server, SUMMARY_CHARS))
        }
    }

    /// Returns the notes that are the same for each call of the tool: its server, its fingerprint and, before its first
    /// use, its description.
    fn usual_notes(&self, known: &PinState) -> Vec<String> {
        let RemoteTool { server, fingerprint, .. } = self.tool();
        let reached_by = single_line(&self.offer.reached_by, SUMMARY_CHARS);
        let mut notes = vec![if self.is_backend() {
            format!("back-end tool, {}", reached_by.replace("/NAME/", &format!("/{}/", self.tool().name)))
        } else {
            format!("MCP server {}, {reached_by}", single_line(server, SUMMARY_CHARS))
        }];
        if *known == PinState::New {
            notes.push(format!("first use; description by the server: {}", self.description_of_server()));
        }
        notes.push(format!("fingerprint {}", single_line(fingerprint, SUMMARY_CHARS)));
        notes
    }

    fn proposal(&self, arguments: &Map<String, Value>, known: &PinState, unchecked: Option<String>) -> Proposal {
        let mut notes = self.usual_notes(known);
        let usual_notes = notes.len();
        if let PinState::Changed(what) = known {
            notes.push(format!("the tool's definition changed since it was last approved:\n{what}"));
        }
        notes.push(describe_arguments(arguments));
        notes.extend(unchecked.map(|why| format!("arguments not checked against the schema: {why}")));
        Proposal { summary: self.title(), notes, usual_notes, ..Proposal::default() }
    }

    fn description_of_server(&self) -> String {
        let cleaned = clean(&self.tool().description);
        let mut words: String = cleaned.trim().chars().take(DESCRIPTION_CHARS).collect();
        if words.len() < cleaned.trim().len() {
            words.push('…');
        }
        words
    }

    fn plan(&self, arguments: Map<String, Value>) -> Result<CallDraft<Payload>, ToolError> {
        let known = self.pin_state();
        let actions = vec![self.action(&known)];
        let summary = self.summary(&arguments);
        if self.unlisted.is_some() {
            // The policy will deny the call; nothing else is reported.
            return Ok(CallDraft { summary, actions, proposal: None, effect: CallEffect::Changes, work: Box::new(()) });
        }
        let value = Value::Object(arguments);
        let unchecked = match self.offer.input.check(&self.tool().input_schema, &value) {
            Fit::Fits => None,
            Fit::Unknown(why) => Some(why),
            Fit::Wrong(why) => {
                return Err(invalid(format!("{why}; call {} with arguments that match its schema", self.offer.plain_name())));
            }
        };
        let Value::Object(arguments) = value else { return Err(invalid("the arguments are not a JSON object")) };
        let timeout = (self.wires.timeout)(&self.tool().server, &self.tool().name);
        Ok(CallDraft {
            proposal: Some(self.proposal(&arguments, &known, unchecked)),
            summary,
            actions,
            effect: CallEffect::Runs { timeout_seconds: timeout.as_secs().max(1), files: Vec::new() },
            work: Box::new(Work {
                offer: Arc::clone(&self.offer),
                wires: Arc::clone(&self.wires),
                arguments,
                timeout,
                is_pinned: known == PinState::Same,
            }),
        })
    }
}

impl AnyTool for ServerTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn offered_name(&self) -> &str {
        &self.offered
    }

    fn alias_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn capability(&self) -> &'static str {
        if self.is_backend() { BACKEND } else { CAPABILITY }
    }

    fn description(&self) -> &str {
        self.description.get_or_init(|| {
            let server = single_line(&self.tool().server, SUMMARY_CHARS);
            let words = self.description_of_server();
            let gap = if words.is_empty() { "" } else { "\n" };
            if self.is_backend() {
                return format!("{words}{gap}[a back-end tool]");
            }
            format!("{words}{gap}[a tool from the MCP server {server}]")
        })
    }

    /// Returns `false`. A redaction marker can be restored only when it is written to a known file, and which files
    /// this tool writes is unknown.
    fn restores(&self) -> bool {
        false
    }

    fn schema(&self, _: &str) -> Value {
        schema::for_model(&self.tool().input_schema)
    }

    fn actions(&self, _: &str, _: Map<String, Value>, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![self.action(&self.pin_state())])
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, _: &ToolSettings) -> Result<CallDraft<Payload>, ToolError> {
        self.plan(arguments)
    }

    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        match payload.downcast::<Work>() {
            Ok(work) => call_tool(*work, settings, context).boxed(),
            Err(_) => std::future::ready(Err(crate::tools::error::stale_denial().into())).boxed(),
        }
    }
}

async fn call_tool(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> CallResult {
    let Work { offer, wires, arguments, timeout, is_pinned } = work;
    if let (Some(pins), false) = (wires.pins.clone(), is_pinned) {
        let tool = Arc::clone(&offer);
        let kept = tokio::task::spawn_blocking(move || pins.keep(&tool.tool)).await;
        if let Ok(Err(error)) = kept {
            let message = format!("{} was not called: its definition could not be saved: {error}", offer.plain_name());
            return Err(ToolError::new(ErrorCode::ToolExecutionFailed, message).into());
        }
    }
    let RemoteTool { server, name, fingerprint, .. } = &offer.tool;
    let call = RemoteCall { server: server.clone(), tool: name.clone(), fingerprint: fingerprint.clone(), arguments };
    let RunContext { output, interrupt, .. } = context;
    let context = RemoteContext { output, cancel: interrupt, timeout };
    match wires.servers.call(call, context).await {
        Ok(result) => blocking(move || convert_result(result, &offer, &settings)).await,
        Err(error) => Err(call_failure(&error, &offer)),
    }
}

fn call_failure(error: &RemoteError, offer: &Offer) -> ToolFailure {
    let (code, hint) = match error {
        RemoteError::Unreachable { .. }
        | RemoteError::Busy { .. }
        | RemoteError::TooLarge { .. }
        | RemoteError::Refused { .. } => (ErrorCode::ToolExecutionFailed, ""),
        RemoteError::NeedsLogin { .. } => (ErrorCode::PermissionDenied, ""),
        RemoteError::TimedOut { .. } => (ErrorCode::ToolExecutionTimeout, ""),
        RemoteError::Cancelled => (ErrorCode::Cancelled, ""),
        RemoteError::OutcomeUnknown { .. } => (ErrorCode::OutcomeUnknown, "; check before you repeat it"),
        RemoteError::Changed { .. } => (ErrorCode::Conflict, "; nothing was done, so call it again"),
        RemoteError::Unknown { .. } => (ErrorCode::ToolNotFound, ""),
    };
    ToolError::new(code, format!("{}: {}{hint}", offer.plain_name(), single_line(&error.to_string(), ERROR_CHARS))).into()
}
