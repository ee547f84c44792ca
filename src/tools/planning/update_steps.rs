//! The `UpdateSteps` tool, which replaces the list of steps by which the model's progress on a task is tracked.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, PlannedStep, StepStatus, ToolError, UPDATE_STEPS};
use crate::tools::alias::Alias;
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum number of steps.
const MAX_STEPS: usize = 30;
/// Maximum number of characters in a step.
const STEP_CHARS: usize = 200;

pub(in crate::tools) struct UpdateSteps;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Arguments {
    /// The whole list, in order; it replaces the previous one. An empty list removes it.
    steps: Vec<Step>,
}

#[derive(Deserialize, JsonSchema)]
struct Step {
    /// The work, in a few words.
    text: String,
    status: Status,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Done,
}

/// Arguments of the corresponding tool of other agents.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Todos {
    todos: Vec<Todo>,
}

#[derive(Deserialize, JsonSchema)]
struct Todo {
    content: String,
    status: TodoStatus,
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct PlanItems {
    plan: Vec<PlanItem>,
}

#[derive(Deserialize, JsonSchema)]
struct PlanItem {
    step: String,
    status: TodoStatus,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

impl From<TodoStatus> for Status {
    fn from(status: TodoStatus) -> Self {
        match status {
            TodoStatus::Pending => Self::Pending,
            TodoStatus::InProgress => Self::InProgress,
            // A cancelled step needs no more work either.
            TodoStatus::Completed | TodoStatus::Cancelled => Self::Done,
        }
    }
}

impl From<Todos> for Arguments {
    fn from(Todos { todos }: Todos) -> Self {
        Self { steps: todos.into_iter().map(|todo| Step { text: todo.content, status: todo.status.into() }).collect() }
    }
}

impl From<PlanItems> for Arguments {
    fn from(PlanItems { plan }: PlanItems) -> Self {
        Self { steps: plan.into_iter().map(|item| Step { text: item.step, status: item.status.into() }).collect() }
    }
}

impl From<Status> for StepStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Done => Self::Done,
        }
    }
}

impl Tool for UpdateSteps {
    const NAME: &'static str = UPDATE_STEPS;
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("update_steps"),
        Alias::new::<Todos>("TodoWrite"),
        Alias::new::<Todos>("todo_write"),
        Alias::new::<PlanItems>("update_plan"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/UpdateSteps.md");
    type Arguments = Arguments;
    type Work = Vec<PlannedStep>;

    fn actions(_: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Self::Work>, ToolError> {
        let steps = checked(arguments.steps, settings)?;
        let summary = if steps.is_empty() { "Remove the steps".to_owned() } else { PlannedStep::progress(&steps) };
        Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Reads, work: steps })
    }

    fn run(steps: Self::Work, _: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        let lines: Vec<String> = steps.iter().map(ToString::to_string).collect();
        let text = if lines.is_empty() { "[the list is empty]".to_owned() } else { lines.join("\n") };
        futures_util::future::ready(Ok(text.into())).boxed()
    }
}

/// Checks the steps. Returns them with secrets redacted and each on a single line.
fn checked(steps: Vec<Step>, settings: &ToolSettings) -> Result<Vec<PlannedStep>, ToolError> {
    if steps.len() > MAX_STEPS {
        return Err(invalid(format!("`steps` has {} entries; the limit is {MAX_STEPS}, so combine some of them", steps.len())));
    }
    let step = |(at, step): (usize, Step)| {
        let text = settings.redactor.hide(&step.text);
        let text = text.split(|letter: char| letter.is_whitespace() || letter.is_control()).filter(|word| !word.is_empty());
        let text = text.collect::<Vec<_>>().join(" ");
        match text.chars().count() {
            0 => Err(invalid(format!("`steps[{at}].text` is empty; say what the step does"))),
            count if count > STEP_CHARS => {
                Err(invalid(format!("`steps[{at}].text` has {count} characters; the limit is {STEP_CHARS}, so shorten it")))
            }
            _ => Ok(PlannedStep { text, status: step.status.into() }),
        }
    };
    steps.into_iter().enumerate().map(step).collect()
}
