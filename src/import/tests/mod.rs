//! Tests of the plans made for sample settings of each agent.

mod claude;
mod codex;
mod gemini;
mod opencode;

use super::{ImportPlan, Planner, SecretFinder, Sources, Targets};
use crate::config::{ConfigError, Directories, Environment};
use crate::host::other_agents::Agent;
use crate::policy::redact::Redactor;
use crate::policy::{Approve, Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use crate::protocol::{Action, GrantRule, Mode, Place, Target, VerdictKind};
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;

/// User with a home directory, a workspace, and aye's directories.
struct User {
    root: tempfile::TempDir,
}

impl User {
    /// Writes files. Paths that begin with `~/` are in the home directory, those that begin with `config/` are in aye's
    /// config directory, and any others are in the workspace.
    fn with(files: &[(&str, &str)]) -> Self {
        let user = Self { root: tempfile::tempdir().unwrap() };
        for directory in ["home", "work", "config", "data"] {
            std::fs::create_dir(user.path(directory)).unwrap();
        }
        for (name, text) in files {
            user.write(name, text);
        }
        user
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    fn place(&self, name: &str) -> PathBuf {
        match (name.strip_prefix("~/"), name.strip_prefix("config/")) {
            (Some(below), _) => self.path("home").join(below),
            (None, Some(below)) => self.path("config").join(below),
            (None, None) => self.path("work").join(name),
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.place(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn targets(&self) -> Targets {
        let directories = Directories::new(self.path("config"), self.path("data"));
        Targets::new(&directories, &self.path("work"))
    }

    fn enforcer(&self) -> Enforcer {
        let context = Context {
            roots: vec![self.path("work")],
            home: self.path("home"),
            mode: Mode::Ask,
            sandbox: Sandbox::Present,
            own: vec![self.path("config"), self.path("data")],
            skills: Vec::new(),
        };
        let own = std::fs::read_to_string(self.targets().policy).ok();
        let layer = match own {
            Some(text) => Layer::new(Scope::User, Bundle::parse(&text, "policy.toml").unwrap()),
            None => Layer::new(Scope::BuiltIn, Bundle::built_in().unwrap()),
        };
        let mut layers = vec![layer];
        if let Ok(text) = std::fs::read_to_string(self.targets().project_policy) {
            layers.push(Layer::new(Scope::Mine, Bundle::parse_rules(&text, "policy.toml").unwrap()));
        }
        Enforcer::new(layers, context).approving(Some(Approve::Command))
    }

    fn try_plan(&self, agent: Agent, accepts_project: bool) -> Result<ImportPlan, ConfigError> {
        let (home, workspace) = (self.path("home"), self.path("work"));
        let secrets = SecretFinder::new(Arc::new(Redactor::new(Vec::new(), [], || [7; 32])));
        let mut sources = Sources::new(agent, &home, &workspace, &Environment::default());
        let settings = super::read(agent, &mut sources, &secrets);
        let planner = Planner {
            agent,
            targets: &self.targets(),
            enforcer: &self.enforcer(),
            secrets: &secrets,
            home: &home,
            workspace: &workspace,
            judged_in: &workspace,
            now: "2026-11-21T00:00:00Z".parse().unwrap(),
            accepts_project,
            is_built_in: |name| name == "review",
        };
        planner.plan(settings, &sources)
    }

    fn plan(&self, agent: Agent) -> ImportPlan {
        self.try_plan(agent, true).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Plans an import, and carries it out.
    fn import(&self, agent: Agent) -> ImportPlan {
        let plan = self.plan(agent);
        super::write(&plan, &self.targets(), &self.path("config"), &self.path("work"), |_| ())
            .unwrap_or_else(|error| panic!("{error}"));
        plan
    }

    /// Returns the verdict on a command once the import has been carried out.
    fn verdict(&self, command: &str) -> VerdictKind {
        self.explain(Action::Exec { command: command.to_owned(), cwd: self.target(".", Place::Directory) })
    }

    fn explain(&self, action: Action) -> VerdictKind {
        self.enforcer().explain(&[action], Timestamp::UNIX_EPOCH).verdict
    }

    fn target(&self, path: &str, place: Place) -> Target {
        let real = if path == "." { self.path("work") } else { self.place(path) };
        Target { given: path.to_owned(), real, place }
    }

    fn reads(&self, path: &str) -> VerdictKind {
        self.explain(Action::Read { target: self.target(path, Place::File { bytes: 1 }) })
    }

    fn writes(&self, path: &str) -> VerdictKind {
        self.explain(Action::Write { target: self.target(path, Place::File { bytes: 1 }) })
    }
}

/// Returns the new text of the planned file whose path ends with `ending`.
fn text<'a>(plan: &'a ImportPlan, ending: &str) -> &'a str {
    let file = plan.files.iter().find(|file| file.shown.ends_with(ending));
    &file.unwrap_or_else(|| panic!("{ending} is not among {:?}", plan.files)).new
}

/// Returns the reason why an entry will not be imported.
#[track_caller]
fn reason<'a>(plan: &'a ImportPlan, entry: &str) -> &'a str {
    let found = plan.not_imported.iter().find(|one| one.entry == entry);
    &found.unwrap_or_else(|| panic!("{entry} is not among {:#?}", plan.not_imported)).reason
}

/// Returns the saved rules in a policy file.
fn rules(text: &str) -> Vec<GrantRule> {
    let all = crate::config::grants::list(text).unwrap();
    all.into_iter().filter(|kept| kept.saved_on().is_some()).map(|kept| kept.rule).collect()
}

/// Asserts that no text in the plan contains any of these secrets.
#[track_caller]
fn assert_without(plan: &ImportPlan, secrets: &[&str]) {
    for secret in secrets {
        for file in &plan.files {
            assert!(
                !file.new.contains(secret) || file.old.as_ref().is_some_and(|old| old.contains(secret)),
                "{secret} in {}",
                file.new
            );
        }
        assert!(!format!("{plan:?}").contains(secret), "{secret} in {plan:#?}");
    }
}

#[test]
fn an_agent_without_settings_has_an_empty_import_plan() {
    for agent in Agent::ALL {
        let plan = User::with(&[]).plan(agent);
        assert!(plan.files.is_empty() && plan.not_imported.is_empty() && plan.sources.is_empty(), "{plan:?}");
    }
}

#[test]
fn files_outside_the_agent_directory_and_oversized_files_are_not_read() {
    let user = User::with(&[("~/secret.json", "{\"env\": {\"A\": \"b\"}}"), ("~/.claude/CLAUDE.md", "Be brief.\n")]);
    std::os::unix::fs::symlink(user.place("~/secret.json"), user.place("~/.claude/settings.json")).unwrap();
    std::os::unix::fs::symlink(user.path("home"), user.path("work/.claude")).unwrap();
    user.write("~/.claude/commands/big.md", &"x".repeat((1 << 20) + 1));
    nix::unistd::mkfifo(&user.place("~/.claude/commands/pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let plan = user.plan(Agent::Claude);
    let problems: Vec<String> = plan.not_imported.iter().map(|one| format!("{}: {}", one.file, one.reason)).collect();
    assert!(problems.iter().any(|one| one.starts_with("~/.claude/settings.json: a symlink that points outside")), "{problems:?}");
    assert!(problems.iter().any(|one| one.starts_with("~/.claude/commands/big.md: larger than 1 MB")), "{problems:?}");
    assert!(problems.iter().any(|one| one.starts_with("~/.claude/commands/pipe.md: cannot be read")), "{problems:?}");
    assert_eq!(plan.files.len(), 1, "{:?}", plan.files);
}

#[test]
fn an_invalid_user_policy_stops_the_import() {
    let user = User::with(&[("~/.claude/CLAUDE.md", "x\n")]);
    let enforcer = user.enforcer();
    user.write("config/policy.toml", "schema_version = 1\nfrobnicate = 2\n");
    let home = user.path("home");
    let secrets = SecretFinder::new(Arc::new(Redactor::new(Vec::new(), [], || [7; 32])));
    let sources = Sources::new(Agent::Claude, &home, &home, &Environment::default());
    let planner = Planner {
        agent: Agent::Claude,
        targets: &user.targets(),
        enforcer: &enforcer,
        secrets: &secrets,
        home: &home,
        workspace: &home,
        judged_in: &home,
        now: Timestamp::UNIX_EPOCH,
        accepts_project: true,
        is_built_in: |_| false,
    };
    let error = planner.plan(super::settings::AgentSettings::default(), &sources).unwrap_err().to_string();
    assert!(error.contains("is not valid") && error.contains("line 2") && error.contains("aye policy validate"), "{error}");
}
