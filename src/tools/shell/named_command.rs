//! Commands that the policy defines as tools. The policy fixes the program and some of its words, and the model
//! provides the arguments.

use super::command_run::{self, AccessRestrictions, PlannedCommand, environment_note, exec_line};
use crate::policy::{ArgumentKind, NamedCommand, line};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::action::NAMED;
use crate::protocol::{Action, ErrorCode, Proposal, Target, ToolError};
use crate::sys::process::Shell;
use crate::tools::annotations::{RUNS, ToolHints};
use crate::tools::argument_names::normalize;
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::{AnyTool, Payload};
use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const TIMEOUT_SECONDS: u64 = 300;

impl AnyTool for NamedCommand {
    fn name(&self) -> &str {
        &self.name
    }

    fn alias_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn capability(&self) -> &'static str {
        NAMED
    }

    fn hints(&self) -> Option<ToolHints> {
        Some(RUNS)
    }

    fn description(&self) -> &str {
        &self.description
    }

    /// Returns `false`. A redaction marker can be restored only when it is written to a file, and this tool writes no
    /// files.
    fn restores(&self) -> bool {
        false
    }

    fn schema(&self, _: &str) -> Value {
        let property = |kind: &ArgumentKind| match kind {
            ArgumentKind::Path => json!({"type": "string", "description": "A path in the workspace to read or write."}),
            ArgumentKind::Input => json!({"type": "string", "description": "A path in the workspace to read."}),
            ArgumentKind::Text => json!({"type": "string"}),
            ArgumentKind::Integer => json!({"type": "integer"}),
            ArgumentKind::OneOf(choices) => json!({"type": "string", "enum": choices}),
        };
        let properties: Map<String, Value> = self.arguments.iter().map(|(name, kind)| (name.clone(), property(kind))).collect();
        let required: Vec<&String> = self.arguments.keys().collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    fn actions(&self, _: &str, arguments: Map<String, Value>, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let cwd = paths.target("cwd", ".", ExpectedKind::Directory)?;
        let (mut values, mut inputs, mut places) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (name, value) in self.parse_values(arguments)? {
            let kind = self.arguments.get(&name);
            if !kind.is_some_and(ArgumentKind::is_path) || value.is_empty() {
                values.insert(name, value);
                continue;
            }
            let target = paths.target(&name, &value, ExpectedKind::File)?;
            values.insert(name.clone(), path_word(&name, &target)?);
            if kind == Some(&ArgumentKind::Input) { inputs.push(target) } else { places.push(target) }
        }
        let argv = self.fill(&values).map_err(invalid)?;
        Ok(vec![Action::Named { name: self.name.clone(), argv, cwd, inputs, paths: places }])
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, settings: &ToolSettings) -> Result<CallDraft<Payload>, ToolError> {
        let actions = self.actions(&self.name, arguments, &Paths::on_disk(settings))?;
        let Some(Action::Named { argv, cwd, .. }) = actions.first() else {
            return Err(ToolError::new(ErrorCode::ToolExecutionFailed, "the command line could not be built"));
        };
        let shown = line(argv);
        let work = PlannedCommand {
            line: exec_line(argv),
            cwd: cwd.clone(),
            timeout_seconds: TIMEOUT_SECONDS,
            stdin: None,
            pinned: None,
            opens: Vec::new(),
            background: false,
            without_stderr: false,
            answer: None,
            narrow: AccessRestrictions::default(),
            shell: Shell::Bash,
        };
        Ok(CallDraft {
            summary: format!("{} $ {shown}", self.name),
            proposal: Some(Proposal {
                summary: format!("Run: {shown}"),
                notes: vec![environment_note(settings)],
                usual_notes: 1,
                ..Proposal::default()
            }),
            actions,
            effect: CallEffect::Runs { timeout_seconds: TIMEOUT_SECONDS, files: Vec::new() },
            work: Box::new(work),
        })
    }

    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        let Ok(work) = payload.downcast::<PlannedCommand>() else {
            let error = ToolError::new(ErrorCode::ToolExecutionFailed, "the plan belongs to another router; plan the call again");
            return futures_util::future::ready(Err(error.into())).boxed();
        };
        command_run::run(*work, settings, context).boxed()
    }
}

trait ParseArguments {
    fn parse_values(&self, arguments: Map<String, Value>) -> Result<BTreeMap<String, String>, ToolError>;
}

impl ParseArguments for NamedCommand {
    /// Returns the arguments as strings. Numbers keep the form in which they were given.
    fn parse_values(&self, arguments: Map<String, Value>) -> Result<BTreeMap<String, String>, ToolError> {
        let mut value = Value::Object(arguments);
        normalize(&mut value, &self.schema(&self.name), "")?;
        let Value::Object(arguments) = value else { return Err(invalid("the arguments are not a JSON object")) };
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        Ok(arguments.into_iter().map(|(name, value)| (name, text(value))).collect())
    }
}

/// Returns a path as a command-line argument. The path is absolute, so it cannot be mistaken for an option.
fn path_word(name: &str, target: &Target) -> Result<String, ToolError> {
    let text = target.real.to_str().map(str::to_owned);
    text.ok_or_else(|| invalid(format!("`{name}`: the name of `{}` is not valid UTF-8", target.given)))
}
