//! Custom tools with several steps. A call is checked against the policy with the actions of all its steps, so no step
//! is granted more than it would be in a call of its own. The actions of every step must therefore be known before the
//! first step runs.

use super::manifest::{CustomTool, Step, ToolBody, for_each_text, step_index};
use super::template::{TemplatePart, pieces, to_word};
use crate::ports::RunContext;
use crate::protocol::{Action, ErrorCode, LeftOut, Proposal, ToolError};
use crate::text::rewrite_strings;
use crate::tools::call_result::{CallResult, ToolFailure, ToolOutput};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::Paths;
use crate::tools::registry::find_built_in;
use crate::tools::settings::ToolSettings;
use crate::tools::shell::command_run::PlannedCommand as CommandWork;
use crate::tools::text::{draft_call, running};
use crate::tools::tool::{Payload, SharedTool};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A step's tool, or the reason why it cannot be used as a step.
pub(super) type StepTool = Result<SharedTool, ToolError>;

struct PipelineStep {
    tool: SharedTool,
    /// Name by which the step calls the tool. Stricter limits may apply to an alias.
    called: String,
    payload: Payload,
    /// Whether the step's input contains output of earlier steps.
    takes: bool,
}

/// The steps of one call, in order.
struct Work {
    name: String,
    steps: Vec<PipelineStep>,
}

/// Returns `Shell.Exec` if any of the steps needs it, and otherwise the first step's capability.
pub(super) fn capability(steps: &[Step]) -> &'static str {
    let of = |step: &Step| find_built_in(&step.tool).map_or("Shell.Exec", |tool| tool.capability());
    let all: Vec<&'static str> = steps.iter().map(of).collect();
    if all.contains(&"Shell.Exec") { "Shell.Exec" } else { all.first().copied().unwrap_or("Shell.Exec") }
}

/// Builds a step's arguments: fills in the arguments of the call and marks where the output of other steps is to be
/// inserted.
fn step_arguments(step: &Step, given: &Map<String, Value>) -> Result<Map<String, Value>, ToolError> {
    let mut made = Map::new();
    for (name, value) in &step.arguments {
        if let Some(value) = fill_value(value, given)? {
            made.insert(name.clone(), value);
        }
    }
    Ok(made)
}

/// Fills in the placeholders in a value. A string that consists of a single placeholder becomes the value of that
/// argument, or is dropped if the argument was not given.
fn fill_value(value: &Value, given: &Map<String, Value>) -> Result<Option<Value>, ToolError> {
    Ok(match value {
        Value::String(text) => {
            let parts = pieces(text);
            if let [TemplatePart::Named(name)] = parts.as_slice()
                && let Some(input) = name.strip_prefix("input.")
            {
                return Ok(given.get(input).cloned());
            }
            let mut whole = String::new();
            for part in parts {
                match part {
                    TemplatePart::Text(text) => whole.push_str(text),
                    TemplatePart::Named(name) => match name.strip_prefix("input.") {
                        Some(input) => {
                            let value = given.get(input).map_or(Some(String::new()), to_word);
                            whole.push_str(&value.ok_or_else(|| {
                                invalid(format!("`{input}` is a list or an object and cannot be inserted into a string"))
                            })?);
                        }
                        None => whole.extend(["{", name, "}"]),
                    },
                }
            }
            Some(Value::String(whole))
        }
        Value::Array(values) => {
            let all = values.iter().map(|value| fill_value(value, given)).collect::<Result<Vec<_>, _>>()?;
            Some(Value::Array(all.into_iter().flatten().collect()))
        }
        Value::Object(values) => {
            let mut made = Map::new();
            for (name, value) in values {
                if let Some(value) = fill_value(value, given)? {
                    made.insert(name.clone(), value);
                }
            }
            Some(Value::Object(made))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.clone()),
    })
}

/// Returns a step's tool, or an error if the tool cannot be used as a step.
pub(super) fn resolve_step_tool(
    step: &Step,
    all: &[Arc<CustomTool>],
    settings: &ToolSettings,
    find: &dyn Fn(&str) -> StepTool,
) -> StepTool {
    let tool = find(&step.tool)?;
    (settings.may_use)(tool.name())?;
    let custom = all.iter().find(|custom| custom.name == tool.name());
    if custom.is_some_and(|custom| matches!(custom.body, ToolBody::Steps(_))) {
        return Err(invalid(format!("the step {} has steps of its own, which is not supported", tool.name())));
    }
    // Only a program that reads its arguments from stdin may get values that are not known yet, because its actions do
    // not depend on them.
    let takes = custom.is_some_and(|custom| matches!(&custom.body, ToolBody::Program(program) if !program.by_words));
    if !takes && needs_step_output(&Value::Object(step.arguments.clone())) {
        let message = format!(
            "the step {} takes the output of another step, so its effects cannot be checked before it runs; only a custom tool \
             that reads its arguments on stdin can do that",
            tool.name()
        );
        return Err(invalid(message));
    }
    Ok(tool)
}

/// Returns whether a value is to contain the output of another step.
fn needs_step_output(value: &Value) -> bool {
    let mut found = false;
    for_each_text(value, &mut |text| {
        found |= pieces(text).iter().any(|piece| matches!(piece, TemplatePart::Named(name) if step_index(name).is_some()));
    });
    found
}

pub(super) fn actions(
    (steps, tools): (&[Step], &[StepTool]),
    given: &Map<String, Value>,
    paths: &Paths<'_>,
) -> Result<Vec<Action>, ToolError> {
    let mut all = Vec::new();
    for (step, tool) in steps.iter().zip(tools) {
        let arguments = step_arguments(step, given)?;
        all.extend(tool.clone()?.actions(&step.tool, arguments, paths)?);
    }
    Ok(all)
}

pub(super) fn draft(
    tool: &CustomTool,
    (steps, tools): (&[Step], &[StepTool]),
    given: &Map<String, Value>,
    settings: &ToolSettings,
) -> Result<CallDraft<Payload>, ToolError> {
    let (mut actions, mut planned, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let mut whole = Proposal { notes: vec![tool.origin(settings)], ..Proposal::default() };
    let (mut changes, mut timeout, mut said) = (false, 0, Vec::new());
    for (at, (step, step_tool)) in steps.iter().zip(tools).enumerate() {
        let named =
            |error: ToolError| ToolError { message: format!("step {}, {}: {}", at + 1, step.tool, error.message), ..error };
        let arguments = step_arguments(step, given).map_err(named)?;
        let of_step = step_tool.clone().map_err(named)?;
        crate::tools::redaction::refuse(of_step.name(), false, &arguments).map_err(named)?;
        let CallDraft { summary, actions: of_it, proposal, effect, work } =
            draft_call(&*of_step, &step.tool, arguments, settings).map_err(named)?;
        actions.extend(of_it);
        match effect {
            CallEffect::Reads => {}
            CallEffect::Asks => return Err(named(invalid("a tool that waits for the user cannot be a step of another tool"))),
            CallEffect::Changes => changes = true,
            CallEffect::Runs { timeout_seconds, files: mut runs } => {
                changes = true;
                timeout += timeout_seconds;
                files.append(&mut runs);
            }
        }
        if let Some(mut proposal) = proposal {
            whole.diff.extend(proposal.diff);
            whole.paths.append(&mut proposal.paths);
            whole.bytes += proposal.bytes;
            let new = proposal.notes.into_iter().map(|note| format!("step {}: {note}", at + 1));
            whole.notes.extend(new);
        }
        said.push(format!("{}. {summary}", at + 1));
        planned.push(PipelineStep {
            tool: of_step,
            called: step.tool.clone(),
            payload: work,
            takes: needs_step_output(&Value::Object(step.arguments.clone())),
        });
    }
    let summary = format!("{}: {}", tool.name, said.join("; "));
    whole.summary.clone_from(&summary);
    Ok(CallDraft {
        summary,
        actions,
        proposal: Some(whole),
        effect: if changes { CallEffect::Runs { timeout_seconds: timeout, files } } else { CallEffect::Reads },
        work: Box::new(Work { name: tool.name.clone(), steps: planned }),
    })
}

/// Returns whether the payload is a sequence of steps, which needs the complete output of each step.
pub(in crate::tools) fn is_chain(payload: &Payload) -> bool {
    payload.is::<Work>()
}

/// Runs the steps in order, stopping at the first failure.
pub(super) async fn run(payload: Payload, settings: Arc<ToolSettings>, context: RunContext) -> CallResult {
    let Ok(work) = payload.downcast::<Work>() else {
        let message = "the plan belongs to another router; plan the call again";
        return Err(ToolError::new(ErrorCode::ToolExecutionFailed, message).into());
    };
    let (mut outputs, mut whole) = (Vec::<String>::new(), ToolOutput::default());
    let count = work.steps.len();
    for (at, PipelineStep { tool, called, mut payload, takes }) in work.steps.into_iter().enumerate() {
        if at > 0 && context.interrupt.is_cancelled() {
            let message = format!("interrupted by the user before step {} of {} (done: {at} of {count})", at + 1, work.name);
            let error = ToolError::new(ErrorCode::Cancelled, message);
            return Err(ToolFailure { changed: whole.changed, artifacts: whole.artifacts, ..error.into() });
        }
        if let Some(command) = payload.downcast_mut::<CommandWork>().filter(|_| takes) {
            command.stdin = command.stdin.take().map(|input| with_outputs(&input, &outputs));
        }
        let name = tool.name();
        // Only the output of the last step goes into the conversation.
        let max_bytes = if at + 1 == count { context.max_bytes } else { usize::MAX };
        let context = RunContext { max_bytes, ..context.clone() };
        match tool.run(payload, running(name, &called, &settings), context).await {
            Ok(told) => {
                // The next step gets the same redacted text as the model.
                outputs.push(settings.redactor.redact(&told.text).text.into_owned());
                whole.denied.extend(told.denied);
                // A hint for continuing one step does not apply to the chain.
                whole.left_out = told.left_out.and_then(|left_out| LeftOut::from_gaps(left_out.gaps, None));
                whole.changed = combine_proposals(whole.changed, told.changed);
                whole.artifacts.extend(told.artifacts);
                whole.images.extend(told.images);
            }
            Err(failed) => {
                let done = if at == 0 {
                    "no earlier step was completed".to_owned()
                } else {
                    format!("completed steps before this one: {at} of {count}")
                };
                let message = format!("step {} of {}, {name}: {} ({done})", at + 1, work.name, failed.error.message);
                let mut failed = ToolFailure { error: ToolError { message, ..failed.error }, ..failed };
                // The result includes the changes of earlier steps.
                failed.changed = combine_proposals(whole.changed, failed.changed);
                whole.artifacts.append(&mut failed.artifacts);
                failed.artifacts = whole.artifacts;
                return Err(failed);
            }
        }
    }
    whole.text = outputs.pop().unwrap_or_default();
    Ok(whole)
}

/// Combines the changes made by two steps.
pub(super) fn combine_proposals(first: Option<Box<Proposal>>, second: Option<Box<Proposal>>) -> Option<Box<Proposal>> {
    let (mut whole, second) = match (first, second) {
        (Some(first), Some(second)) => (first, second),
        (first, second) => return first.or(second),
    };
    let new: Vec<_> = second.paths.into_iter().filter(|path| !whole.paths.contains(path)).collect();
    whole.summary = format!("{}; {}", whole.summary, second.summary);
    whole.diff.extend(second.diff);
    whole.paths.extend(new);
    whole.bytes += second.bytes;
    whole.notes.extend(second.notes);
    Some(whole)
}

/// Replaces the marks in an input with step outputs. Does so in a single pass, so text in an output is never mistaken
/// for a mark.
fn with_outputs(input: &str, outputs: &[String]) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(input) else { return input.to_owned() };
    rewrite_strings(&mut value, &|text| insert_outputs(text, outputs));
    value.to_string()
}

fn insert_outputs(text: &str, outputs: &[String]) -> String {
    let parts = pieces(text).into_iter().map(|piece| match piece {
        TemplatePart::Text(text) => text.to_owned(),
        TemplatePart::Named(name) => match step_index(name).and_then(|step| outputs.get(step)) {
            Some(output) => output.clone(),
            None => format!("{{{name}}}"),
        },
    });
    parts.collect()
}
