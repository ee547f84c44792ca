//! The `ProposePlan` tool, which shows a plan to the user. Approving the plan allows the actions in it until the task
//! ends.

use super::plan_document;
use crate::ports::{Artifacts, BoxFuture, NewArtifact, RunContext};
use crate::protocol::{Action, Amendable, Amendment, Artifact, ArtifactKind, ErrorCode, PROPOSE_PLAN, TaskPlan, ToolError};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolFailure, ToolOutput, blocking};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::{amendment_error, invalid};
use crate::tools::output::new;
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// File name under which the document is shown.
const NAME: &str = "plan.md";
const EDITED: &str = "The user edited the plan. This is what they approved:";

pub(in crate::tools) struct ProposePlan;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Arguments {
    /// The plan in Markdown: goal, approach, how to check the result.
    plan: String,
    /// Files to create or change, one by one; no directories or patterns.
    #[serde(default)]
    files: Vec<String>,
    /// Command lines to run, exactly as you will run them.
    #[serde(default)]
    commands: Vec<String>,
    /// Hosts to read from: `docs.rs`.
    #[serde(default)]
    hosts: Vec<String>,
}

/// Arguments of the corresponding tool of other agents.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct OnlyText {
    /// The plan in Markdown.
    plan: String,
}

impl From<OnlyText> for Arguments {
    fn from(OnlyText { plan }: OnlyText) -> Self {
        Self { plan, files: Vec::new(), commands: Vec::new(), hosts: Vec::new() }
    }
}

impl Tool for ProposePlan {
    const NAME: &'static str = PROPOSE_PLAN;
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("propose_plan"),
        Alias::new::<OnlyText>("ExitPlanMode"),
        Alias::new::<OnlyText>("exit_plan_mode"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/ProposePlan.md");
    type Arguments = Arguments;
    type Work = TaskPlan;

    fn actions(_: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<TaskPlan>, ToolError> {
        let Arguments { plan, files, commands, hosts } = arguments;
        let text = plan_document::render(&plan, [&files, &commands, &hosts]).map_err(invalid)?;
        draft(&text, settings)
    }

    fn amendable(plan: &TaskPlan, _: &ToolSettings) -> (Amendable, Vec<String>) {
        (Amendable { files: vec![NAME.to_owned()], ..Amendable::default() }, vec![plan.text.clone()])
    }

    fn amend(_: TaskPlan, amendment: &Amendment, settings: &ToolSettings) -> Result<(CallDraft<TaskPlan>, String), ToolError> {
        let Amendment::File { text, .. } = amendment else { return Err(amendment_error()) };
        let draft = draft(text, settings)?;
        let told = format!("{EDITED}\n\n{}\n", draft.work.text);
        Ok((draft, told))
    }

    fn run(plan: TaskPlan, settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || {
            let Some(artifacts) = &settings.session.artifacts else {
                return Ok(ToolOutput::from("The plan is not stored.".to_owned()));
            };
            let stored = store(artifacts.as_ref(), &plan.text)?;
            let text = format!("The plan is stored as {}.", stored.uri);
            Ok(ToolOutput { text, artifacts: vec![stored], ..ToolOutput::default() })
        })
    }
}

fn draft(text: &str, settings: &ToolSettings) -> Result<CallDraft<TaskPlan>, ToolError> {
    let text = settings.redactor.hide(text).into_owned();
    let plan = plan_document::read(text, &Paths::on_disk(settings)).map_err(invalid)?;
    let summary = format!("Plan: {}", plan_document::title(&plan.text));
    Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Reads, work: plan })
}

fn store(artifacts: &dyn Artifacts, text: &str) -> Result<Artifact, ToolFailure> {
    let meta: NewArtifact = new(ArtifactKind::File, NAME, "text/markdown");
    let stored = artifacts.begin(meta).and_then(|mut writer| {
        writer.write(text.as_bytes())?;
        writer.finish()
    });
    stored.map_err(|error| {
        let message = format!("the plan could not be stored: {}; nothing was changed", error.message);
        ToolError::new(ErrorCode::ToolExecutionFailed, message).into()
    })
}
