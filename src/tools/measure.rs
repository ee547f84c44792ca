//! Gives `fuzz/` and `benches/mcp.rs` access to tools without a session.

use super::{
    CommandSettings, Conflict, HttpAccess, PathAccess, RemoteConfig, Router, SandboxPolicy, SessionServices, ToolSettings,
    ToolSources, Toolset,
};
use crate::policy::redact::Redactor;
use crate::policy::{Bundle, Context, Enforcer, Explanation, Layer, Sandbox, Scope, Verdict};
use crate::ports::{RemoteServers, RunContext, ToolRouter};
use crate::protocol::{Action, CallArguments, CallId, Mode, TextTools, ToolCall, ToolResult};
use crate::sys;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

fn settings(workspace: &Path) -> ToolSettings {
    ToolSettings {
        workspace: workspace.to_owned(),
        home: Some("/home/user".into()),
        max_file_size_bytes: 1 << 20,
        max_output_bytes: 1 << 20,
        paths: PathAccess {
            may_read: Arc::new(|_| true),
            may_read_entry: None,
            may_write: Arc::new(|_| true),
            may_delete: Arc::new(|_| true),
            may_open: Arc::new(|_| true),
            may_show: Arc::new(|_| true),
            may_follow: Arc::new(|_| true),
            relative_paths: true,
            follow_links: true,
        },
        http: HttpAccess {
            may_fetch: Arc::new(|url, _| Explanation::unreadable(format!("{url} is not approved"))),
            may_connect: Arc::new(|url, address| Err(format!("no connection to {address} for {url}"))),
            fetcher: sys::http::fetch::Fetcher::default(),
        },
        session: SessionServices::detached(),
        command: CommandSettings {
            shell: sys::process::Shell::Bash,
            environment: sys::process::EnvironmentSelection::Core,
            secret_names: Vec::new(),
            helper: sys::process::Helper::default(),
            sandbox: SandboxPolicy::unsandboxed(),
            git_is_read_only: false,
            commit_target: None,
        },
        text: TextTools::default(),
        grants: Arc::new(|_| true),
        may_use: Arc::new(|_| Ok(())),
        redactor: Arc::new(Redactor::new(Vec::new(), [], || [7; 32])),
    }
}

/// Returns the actions of a call whose arguments are this text.
pub fn actions(tool_name: &str, text: &str) -> Result<Vec<Action>, String> {
    let tools = Toolset::new(settings(Path::new("/home/user/project")), ToolSources::default());
    let arguments = serde_json::from_str(text).map_or_else(|_| CallArguments::Malformed(text.to_owned()), CallArguments::Object);
    tools.actions_for(tool_name, &arguments).map_err(|error| format!("{error:?}"))
}

/// Policy that allows reading the workspace, and using every MCP tool without approval.
const OPEN: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"*\"]\nrequires_approval = false\n";

/// Every stage of a call between the agent loop and the tool: plan, verdict, permit, and run.
pub struct Bench {
    router: Router,
    policy: Enforcer,
}

impl Bench {
    pub fn new(workspace: &Path, servers: Option<Arc<dyn RemoteServers>>) -> Result<Self, String> {
        let remote = servers.map(|servers| RemoteConfig {
            servers,
            conflict: Conflict::LocalFirst,
            may_invoke: Arc::new(|_, _| Ok(())),
            pins: None,
            max_bytes: None,
            timeout: Arc::new(|_, _| TIMEOUT),
        });
        let tools = Toolset::new(settings(workspace), ToolSources { remote, ..ToolSources::default() });
        let context = Context {
            roots: vec![workspace.to_owned()],
            home: PathBuf::from("/home/user"),
            mode: Mode::Ask,
            sandbox: Sandbox::Present,
            own: Vec::new(),
            skills: Vec::new(),
        };
        let bundle = Bundle::parse(OPEN, "open.toml").map_err(|error| format!("{error:?}"))?;
        Ok(Self { router: Router::new(tools), policy: Enforcer::new(vec![Layer::new(Scope::User, bundle)], context) })
    }

    pub async fn call(
        &self,
        tool_name: &str,
        arguments: serde_json::Map<String, serde_json::Value>,
    ) -> Result<ToolResult, String> {
        let call = ToolCall {
            tool_call_id: CallId::new("call_1"),
            tool_name: tool_name.to_owned(),
            arguments: CallArguments::Object(arguments),
        };
        let plan = self.router.plan(call).await.map_err(|error| error.message)?;
        let Verdict::Allow(permit) = plan.judge(&self.policy, jiff::Timestamp::now()) else {
            return Err(format!("`{tool_name}` is not allowed"));
        };
        Ok(self.router.run(plan, permit, RunContext::detached()).await)
    }
}
