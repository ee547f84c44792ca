//! The `Skill` tool, which returns a skill's instructions and the paths of its files.

use super::description::describe;
use super::{ALIASES, SKILL};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Target, ToolError, cut_position_before, size};
use crate::skills::{Origin, SKILL_FILE, Skill, SkillSet};
use crate::tools::arguments::{parse, schema};
use crate::tools::call_result::{CallResult, ToolOutput, blocking};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::{invalid, stale_denial};
use crate::tools::paths::{ExpectedKind, Paths};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::{AnyTool, Payload};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::sync::Arc;

/// Maximum number of files to list in a result.
const MAX_LISTED: usize = 100;
/// Maximum number of skills to suggest in an error.
const MAX_SUGGESTED: usize = 20;
/// Maximum size in bytes of a `SKILL.md`, which is read when the skill is loaded.
const SKILL_BYTES: u64 = 256 << 10;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    /// Name of the skill.
    name: String,
    /// Input for the skill, if it takes any.
    arguments: Option<String>,
}

/// The tool, for a fixed set of skills.
pub(in crate::tools) struct SkillTool {
    set: Arc<SkillSet>,
    description: String,
}

/// The skill to load, with its arguments.
struct Work {
    skill: Skill,
    arguments: String,
}

impl SkillTool {
    /// Creates the tool. Returns `None` if there is no skill that the model can load.
    pub(in crate::tools) fn new(set: Arc<SkillSet>) -> Option<Self> {
        let description = describe(&set)?;
        Some(Self { set, description })
    }

    fn find(&self, name: &str) -> Result<&Skill, ToolError> {
        let name = name.trim().trim_start_matches('/');
        match self.set.find(name) {
            Some(skill) if skill.manifest.for_model => Ok(skill),
            Some(_) => {
                let message = format!("the skill `{name}` can only be used by the user (`disable-model-invocation`)");
                Err(invalid(message))
            }
            None => Err(self.unknown_skill(name)),
        }
    }

    /// Builds the error for an unknown skill. It suggests skills whose names or descriptions are similar.
    fn unknown_skill(&self, name: &str) -> ToolError {
        let word = name.to_lowercase();
        let is_near = |skill: &&Skill| {
            let description = skill.manifest.description.to_lowercase();
            let distance = strsim::damerau_levenshtein(&word, skill.name());
            skill.name().contains(&word) || description.contains(&word) || distance <= 1 + skill.name().len() / 4
        };
        let near: Vec<&Skill> = self.set.for_model().filter(is_near).collect();
        let mut message = format!("unknown skill `{}`", name.escape_debug());
        if near.is_empty() {
            let names: Vec<&str> = self.set.for_model().take(MAX_SUGGESTED).map(Skill::name).collect();
            // Writing to a string cannot fail.
            let _ = write!(message, "; skills: {}", names.join(", "));
        } else {
            message.push_str("; similar skills:");
            for skill in near.iter().take(MAX_SUGGESTED) {
                let _ = write!(message, "\n{}: {}", skill.name(), skill.manifest.description);
            }
        }
        invalid(message)
    }

    fn action(skill: &Skill, paths: &Paths<'_>) -> Result<Action, ToolError> {
        let file = skill.real.join(SKILL_FILE);
        let target = paths.target("name", &file.to_string_lossy(), ExpectedKind::File)?;
        Ok(Action::Read { target: Target { given: skill.file(), ..target } })
    }
}

impl AnyTool for SkillTool {
    fn name(&self) -> &'static str {
        SKILL
    }

    fn alias_names(&self) -> Vec<&'static str> {
        ALIASES.to_vec()
    }

    fn capability(&self) -> &'static str {
        "File.Read"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn restores(&self) -> bool {
        false
    }

    fn schema(&self, _: &str) -> Value {
        schema::<Arguments>()
    }

    fn actions(&self, _: &str, arguments: Map<String, Value>, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let arguments: Arguments = parse(arguments)?;
        Ok(vec![Self::action(self.find(&arguments.name)?, paths)?])
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, settings: &ToolSettings) -> Result<CallDraft<Payload>, ToolError> {
        let Arguments { name, arguments } = parse(arguments)?;
        let skill = self.find(&name)?;
        let action = Self::action(skill, &Paths::on_disk(settings))?;
        Ok(CallDraft {
            summary: format!("Use the skill {} ({})", skill.name(), skill.file()),
            actions: vec![action],
            proposal: None,
            effect: CallEffect::Reads,
            work: Box::new(Work { skill: skill.clone(), arguments: arguments.unwrap_or_default() }),
        })
    }

    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        let Ok(work) = payload.downcast::<Work>() else {
            return futures_util::future::ready(Err(stale_denial().into())).boxed();
        };
        blocking(move || {
            let skill = current(&work.skill)?;
            let room = settings.max_output_bytes.min(context.output_limit());
            let mut text = result(&skill, &work.arguments, room);
            if skill.digest != work.skill.digest {
                text.push_str("\n\n[The skill changed since its description was listed; this is its current text.]");
            }
            settings.session.skills.activate(skill.name());
            Ok(ToolOutput::from(text))
        })
    }
}

/// Returns the skill with its current instructions. Fails if a skill that belongs to a project or a plugin has changed,
/// because the user reviewed exactly the earlier content.
fn current(skill: &Skill) -> Result<Skill, ToolError> {
    if let Some(change) = skill.change() {
        let advice = match skill.origin {
            Origin::Project | Origin::User => "since the user trusted the project. The user can restart aye to review the change",
            Origin::Plugin => {
                "since the user added the plugin. The user can run `aye plugin list` to see the plugins that changed"
            }
        };
        let message = format!("the skill `{}` is not used: {change} {advice}", skill.name());
        return Err(ToolError::new(ErrorCode::Conflict, message));
    }
    match skill.origin {
        Origin::Project | Origin::Plugin => Ok(skill.clone()),
        Origin::User => skill.reread(SKILL_BYTES).map_err(|why| {
            ToolError::new(ErrorCode::ToolExecutionFailed, format!("cannot load the skill `{}`: {why}", skill.name()))
        }),
    }
}

/// Formats the instructions and the skill's files. The paths are in a form that other tools accept.
fn result(skill: &Skill, arguments: &str, max_bytes: usize) -> String {
    let directory = skill.real.display().to_string();
    let mut text = format!("{}\n{}\n", skill.header(), skill.location_note());
    if let Some(tools) = &skill.manifest.allowed_tools {
        let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Its tools: {tools}. Until the task ends, calls to other tools need the user's approval.");
    }
    let body = match skill.instructions(arguments) {
        body if body.is_empty() => "(The skill has no instructions.)".to_owned(),
        body => body,
    };
    let files = files(skill, &directory);
    let room = max_bytes.saturating_sub(text.len() + files.len());
    let end = cut_position_before(&body, room);
    let _ = write!(text, "\n{}", &body[..end]);
    if end < body.len() {
        let left = size((body.len() - end) as u64);
        let _ = write!(text, "\n[truncated: {left} omitted; read {directory}/{SKILL_FILE} for the rest]");
    }
    text + &files
}

fn files(skill: &Skill, directory: &str) -> String {
    let all = skill.files();
    let others: Vec<_> = all.iter().filter(|file| file.path != SKILL_FILE).collect();
    let mut text = String::new();
    if !others.is_empty() {
        text.push_str("\n\nFiles of the skill:");
    }
    for file in others.iter().take(MAX_LISTED) {
        let _ = write!(text, "\n{directory}/{} ({})", file.path, size(file.bytes));
    }
    if others.len() > MAX_LISTED {
        let _ = write!(text, "\n{} more", others.len() - MAX_LISTED);
    }
    text
}
