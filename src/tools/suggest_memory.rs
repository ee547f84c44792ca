//! The `SuggestMemory` tool, which proposes an instruction for future sessions. The user decides whether it is written
//! to a file.

use crate::ports::{BoxFuture, MemorySuggestion, RunContext, SuggestionOutcome};
use crate::protocol::{Action, ErrorCode, MemoryTarget, SUGGEST_MEMORY, ToolError};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolOutput, blocking};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::tools) struct SuggestMemory;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Arguments {
    /// The instruction in one plain sentence, such as `Run tests with cargo nextest`. No secrets, no markup.
    text: String,
    /// The file: `personal` for this user in this project, `project` for everyone in it, `global` for all the user's
    /// projects.
    #[serde(default)]
    target: TargetArgument,
    /// Why the instruction helps later sessions, in one sentence for the user.
    reason: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TargetArgument {
    #[default]
    Personal,
    Project,
    Global,
}

impl From<TargetArgument> for MemoryTarget {
    fn from(target: TargetArgument) -> Self {
        match target {
            TargetArgument::Personal => Self::Personal,
            TargetArgument::Project => Self::Project,
            TargetArgument::Global => Self::Global,
        }
    }
}

impl Tool for SuggestMemory {
    const NAME: &'static str = SUGGEST_MEMORY;
    const ALIASES: &'static [Alias<Arguments>] = &[Alias::with_same_arguments("suggest_memory")];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../assets/tools/SuggestMemory.md");
    type Arguments = Arguments;
    type Work = MemorySuggestion;

    fn actions(_: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<MemorySuggestion>, ToolError> {
        let Arguments { text, target, reason } = arguments;
        let Some(inbox) = &settings.session.memory else { return Err(invalid("the memory is disabled in this session")) };
        let text = inbox.check(&text).map_err(invalid)?;
        let summary = format!("Suggest for memory: {text}");
        let work = MemorySuggestion { text, target: target.into(), reason };
        Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Reads, work })
    }

    fn run(suggestion: MemorySuggestion, settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || {
            let Some(inbox) = &settings.session.memory else { return Err(failure("the memory is disabled").into()) };
            let outcome = inbox.suggest(&suggestion).map_err(|why| failure(&why))?;
            Ok(ToolOutput::from(describe(outcome).to_owned()))
        })
    }
}

fn failure(why: &str) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionFailed, format!("the proposal was not stored: {why}"))
}

fn describe(outcome: SuggestionOutcome) -> &'static str {
    match outcome {
        SuggestionOutcome::Added => "Proposed. The user decides later; nothing changes until then.",
        SuggestionOutcome::Merged => "An open proposal already says this. The user decides later.",
        SuggestionOutcome::AlreadyInFile => "The file already says this; nothing was proposed.",
        SuggestionOutcome::DecidedBefore => {
            "The user has already applied or dropped this; nothing was proposed. Do not suggest it again."
        }
    }
}
