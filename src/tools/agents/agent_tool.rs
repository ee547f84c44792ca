//! The `Agent` tool, which starts an agent with its own context and returns the agent's last message.

use super::agent_tools::AgentTools;
use super::{AGENT, ALIASES};
use crate::ports::{AgentTask, AgentTerms, BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Mode, ToolError, cut_position_before};
use crate::subagents::{AgentDefinition, AgentSet};
use crate::text::clean_line;
use crate::tools::arguments::{parse, schema};
use crate::tools::call_result::{CallResult, ToolOutput};
use crate::tools::described_list::described_list;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::{invalid, stale_denial};
use crate::tools::paths::Paths;
use crate::tools::session_agents::SessionAgents;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::{AnyTool, Payload};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Maximum prompt size in bytes.
const PROMPT_BYTES: usize = 64 << 10;
/// Maximum number of characters in a task's short description.
const TITLE_CHARS: usize = 80;
/// Call timeout in seconds. The step limit usually ends an agent earlier.
const TIMEOUT_SECONDS: u64 = 3_600;
/// Number of bytes reserved for the note about omitted text.
const NOTE_BYTES: usize = 100;
/// Maximum number of agents listed in an error.
const MAX_SUGGESTED: usize = 30;

/// Other agents' names for built-in agents.
const CORRESPONDING: &[(&str, &str)] = &[("explorer", "explore")];
/// Other agents' names for an agent without a specialty, which aye does not have.
const GENERAL: [&str; 4] = ["general-purpose", "general", "default", "worker"];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    /// Name of the agent.
    agent: String,
    /// The task in 3 to 6 words, for the user.
    description: Option<String>,
    /// The whole task: the agent sees nothing else from this conversation.
    prompt: String,
}

/// The tool, with the agents that were available when the toolset was created.
pub(in crate::tools) struct AgentTool {
    agents: SessionAgents,
    set: Arc<AgentSet>,
    description: String,
}

/// An agent to start.
struct Work {
    agent: AgentDefinition,
    title: String,
    prompt: String,
    terms: AgentTerms,
}

impl AgentTool {
    pub(in crate::tools) fn new(agents: SessionAgents) -> Self {
        let set = agents.set();
        let listed: Vec<(&str, &str)> =
            set.agents.iter().map(|agent| (agent.name.as_str(), agent.description.as_str())).collect();
        let description = format!("{}\n{}", include_str!("../../../assets/tools/Agent.md").trim_end(), described_list(&listed));
        Self { agents, set, description }
    }

    /// Returns whether the tool is offered only on demand, which is the case if neither the user nor the project
    /// defines agents.
    pub(in crate::tools) fn is_seldom_used(&self) -> bool {
        self.set.is_built_in()
    }

    fn find(&self, name: &str) -> Result<&AgentDefinition, ToolError> {
        let given = name.trim_start_matches('@');
        let corresponding = || CORRESPONDING.iter().find(|(other, _)| given.trim().eq_ignore_ascii_case(other));
        let found = self.set.find(given).or_else(|| corresponding().and_then(|(_, own)| self.set.find(own)));
        found.ok_or_else(|| {
            let names: Vec<&str> = self.set.agents.iter().take(MAX_SUGGESTED).map(|agent| agent.name.as_str()).collect();
            let more = self.set.agents.len().saturating_sub(MAX_SUGGESTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let is_general = GENERAL.iter().any(|other| given.trim().eq_ignore_ascii_case(other));
            let general = if is_general { ". There is no general agent: do other tasks yourself" } else { "" };
            invalid(format!("unknown agent `{}`; agents: {}{more}{general}", name.escape_debug(), names.join(", ")))
        })
    }

    fn work(&self, arguments: Map<String, Value>) -> Result<Work, ToolError> {
        let Arguments { agent, description, prompt } = parse(arguments)?;
        let agent = self.find(&agent)?;
        if prompt.trim().is_empty() {
            return Err(invalid("`prompt` is empty; describe the whole task"));
        }
        if prompt.len() > PROMPT_BYTES {
            let message = format!(
                "`prompt` is {} KB; the limit is {} KB. Name files that the agent should read instead",
                prompt.len() >> 10,
                PROMPT_BYTES >> 10
            );
            return Err(invalid(message));
        }
        let title = description.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| prompt.clone());
        let title = clean_line(title.trim().lines().next().unwrap_or_default());
        let end = title.char_indices().nth(TITLE_CHARS).map_or(title.len(), |(at, _)| at);
        let title = title[..cut_position_before(&title, end)].trim_end().to_owned();
        let terms = self.agents.runner().terms(agent.max_steps);
        Ok(Work { agent: agent.clone(), title, prompt, terms })
    }
}

impl AnyTool for AgentTool {
    fn name(&self) -> &'static str {
        AGENT
    }

    fn alias_names(&self) -> Vec<&'static str> {
        ALIASES.to_vec()
    }

    /// Returns the capability that every agent needs: reading. Each of an agent's actions is checked separately.
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

    fn actions(&self, _: &str, arguments: Map<String, Value>, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        self.work(arguments).map(|_| Vec::new())
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, _: &ToolSettings) -> Result<CallDraft<Payload>, ToolError> {
        let work = self.work(arguments)?;
        let AgentTerms { max_steps, budget_percent } = work.terms;
        let reads_only = AgentTools::new(&work.agent).reads_only || self.agents.runner().mode() == Mode::Plan;
        let access = if reads_only { "reads only" } else { "can change files" };
        let summary = format!(
            "Agent {}: {} ({access}; at most {max_steps} steps and {budget_percent} % of each budget)",
            work.agent.name, work.title
        );
        let effect = CallEffect::Runs { timeout_seconds: TIMEOUT_SECONDS, files: Vec::new() };
        Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect, work: Box::new(work) })
    }

    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        let Ok(work) = payload.downcast::<Work>() else {
            return futures_util::future::ready(Err(stale_denial().into())).boxed();
        };
        let Some(tool_call_id) = context.tool_call_id.clone() else {
            let error = ToolError::new(ErrorCode::ToolExecutionFailed, "agents run only in a session");
            return futures_util::future::ready(Err(error.into())).boxed();
        };
        let runner = Arc::clone(self.agents.runner());
        let max_bytes = settings.max_output_bytes.min(context.output_limit());
        async move {
            let Work { agent, title, prompt, terms } = *work;
            let tools = AgentTools::new(&agent);
            let (names, denied_tools) = (tools.names(), tools.denied);
            let (reads_only, scope) = (tools.reads_only, tools.scope);
            let AgentDefinition { name, prompt: instructions, model, effort, .. } = agent;
            let task = AgentTask {
                tool_call_id,
                agent: name,
                title,
                prompt,
                instructions,
                tools: names,
                denied_tools,
                scope,
                reads_only,
                model,
                effort,
                terms,
            };
            let text = runner.run(task, context).await?;
            Ok(ToolOutput::from(shortened(text, max_bytes)))
        }
        .boxed()
    }
}

/// Shortens text to at most `max_bytes` bytes, including a note that states how much was omitted.
fn shortened(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let end = cut_position_before(&text, max_bytes.saturating_sub(NOTE_BYTES));
    format!("{}\n[cut: {} bytes of the agent's last message are omitted]", &text[..end], text.len() - end)
}
