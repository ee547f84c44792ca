//! Tests of the tool that starts agents, using a runner that only records their tasks.

use crate::ports::{AgentRunner, AgentTask, AgentTerms, BoxFuture, RunContext, ToolRouter};
use crate::protocol::{CallId, Command, ErrorCode, Mode, SessionId, ToolError, ToolStatus};
use crate::subagents::{AgentFile, AgentOrigin, AgentSet};
use crate::tools::on_demand::FIND_TOOLS;
use crate::tools::session_agents::SessionAgents;
use crate::tools::tests::Bench;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Runner that records tasks without running them, in a session with this mode.
#[derive(Default)]
struct Recorder(Mutex<Vec<AgentTask>>, Mode);

impl AgentRunner for Recorder {
    fn terms(&self, max_steps: Option<u32>) -> AgentTerms {
        AgentTerms { max_steps: max_steps.unwrap_or(50), budget_percent: 25 }
    }

    fn mode(&self) -> Mode {
        self.1
    }

    fn run(&self, task: AgentTask, _: RunContext) -> BoxFuture<'static, Result<String, ToolError>> {
        self.0.lock().unwrap().push(task);
        Box::pin(std::future::ready(Ok("x".repeat(1 << 20))))
    }

    fn stepped(&self, _: u64) {}

    fn stop(&self, _: &SessionId) {}

    fn pass_command(&self, _: &SessionId, _: Command) {}

    fn end_all(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn with_agents(files: &[AgentFile]) -> (Bench, Arc<Recorder>) {
    let runner = Arc::new(Recorder::default());
    let mut bench = Bench::new();
    let set = Arc::new(AgentSet::new(files, Vec::new()));
    bench.settings.session.agents = Some(SessionAgents::new(set, runner.clone()));
    (bench, runner)
}

fn helper() -> AgentFile {
    let text = "---\nname: helper\ndescription: Helps a lot.\ntools: Read, Edit\nmaxTurns: 7\neffort: low\n---\nBe brief.";
    AgentFile { shown: "helper.md".to_owned(), content: Ok(text.into()), origin: AgentOrigin::Project }
}

#[test]
fn an_agent_call_describes_the_agent_its_task_and_its_limits() {
    let (bench, runner) = with_agents(&[helper()]);
    let arguments = json!({"subagent_type": "Helper", "description": "Find the parser", "prompt": "Where is the parser?"});
    let plan = bench.plan("Task", arguments.clone()).unwrap();
    assert_eq!(plan.summary, "Agent helper: Find the parser (can change files; at most 7 steps and 25 % of each budget)");
    assert!(plan.actions.is_empty() && plan.tool_name == "Agent");
    let result = bench.call("Agent", arguments);
    assert_eq!(result.status, ToolStatus::Succeeded);
    assert!(
        result.output_text.len() <= 100 << 10 && result.output_text.contains("bytes of the agent's last message are omitted")
    );
    let task = runner.0.lock().unwrap().remove(0);
    assert_eq!((task.agent.as_str(), task.prompt.as_str()), ("helper", "Where is the parser?"));
    assert_eq!(
        (task.instructions.as_str(), task.tools),
        ("Be brief.", ["ReadFile", "EditFile", FIND_TOOLS].map(str::to_owned).to_vec())
    );
    assert_eq!(task.tool_call_id, CallId::new("c"));
}

#[test]
fn an_agent_of_a_session_in_plan_mode_reads_only() {
    let mut bench = Bench::new();
    let set = Arc::new(AgentSet::new(&[helper()], Vec::new()));
    bench.settings.session.agents = Some(SessionAgents::new(set, Arc::new(Recorder(Mutex::default(), Mode::Plan))));
    let plan = bench.plan("Agent", json!({"agent": "helper", "description": "Look", "prompt": "Look."})).unwrap();
    assert_eq!(plan.summary, "Agent helper: Look (reads only; at most 7 steps and 25 % of each budget)");
}

#[test]
fn an_invalid_call_starts_no_agent() {
    let (bench, runner) = with_agents(&[]);
    for (arguments, part) in [
        (json!({"agent": "other", "prompt": "x"}), "unknown agent `other`; agents: explore, review"),
        (json!({"agent": "a\u{1b}[2J", "prompt": "x"}), "unknown agent `a\\u{1b}[2J`"),
        (json!({"agent": "general-purpose", "prompt": "x"}), "agents: explore, review. There is no general agent"),
        (json!({"agent": "explore", "prompt": " "}), "`prompt` is empty"),
        (json!({"agent": "explore", "prompt": "x".repeat(65 << 10)}), "the limit is 64 KB"),
        (json!({"prompt": "x"}), "agent"),
    ] {
        let (code, message) = bench.error("Agent", arguments);
        assert!(code == ErrorCode::InvalidRequest && message.contains(part), "{message}");
    }
    assert!(runner.0.lock().unwrap().is_empty());
}

#[test]
fn arguments_and_agents_of_other_coding_agents_are_accepted() {
    let (bench, _) = with_agents(&[]);
    for (tool, arguments) in [
        ("Task", json!({"subagent_type": "Explore", "prompt": "x", "model": "haiku", "run_in_background": true})),
        ("Agent", json!({"subagent_type": "explorer", "prompt": "x", "isolation": "worktree"})),
    ] {
        let plan = bench.plan(tool, arguments).unwrap();
        assert!(plan.summary.starts_with("Agent explore: x"), "{}", plan.summary);
    }
    let (_, message) = bench.error("Agent", json!({"agent": "explore", "prompt": "x", "resume": "id"}));
    assert!(message.contains("`resume` is not an argument"), "{message}");
}

#[test]
fn the_agent_tool_is_offered_from_the_start_only_with_custom_agents() {
    let names = |files: &[AgentFile]| {
        let (mut bench, _) = with_agents(files);
        bench.sources.on_demand = true;
        let definitions = bench.router().definitions();
        definitions.into_iter().map(|tool| (tool.tool_name, tool.description)).collect::<Vec<_>>()
    };
    let built_in = names(&[]);
    assert!(!built_in.iter().any(|(name, _)| name == "Agent"));
    assert!(built_in.iter().any(|(name, about)| name == FIND_TOOLS && about.contains("Agent (agents for parts of a task)")));
    let own = names(&[helper()]);
    let (_, description) = own.iter().find(|(name, _)| name == "Agent").unwrap();
    assert!(description.contains("- helper: Helps a lot."), "{description}");
    assert!(!Bench::new().router().definitions().iter().any(|tool| tool.tool_name == "Agent"));
}
