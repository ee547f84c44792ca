//! Project in a temporary directory, with its own home, config and data directories next to it.

use super::server::Server;
use super::{Output, Running, Terminal};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Path of the binary under test.
const AYE: &str = env!("CARGO_BIN_EXE_aye");

/// Files, directories and environment of a user who starts aye.
pub struct Project {
    root: tempfile::TempDir,
    environment: Vec<(String, String)>,
    /// Whether commands without a rule are approved by their effects, which is the default of aye. Most tests approve
    /// the command instead.
    approves_effects: bool,
}

/// Subcommands that run tools.
const RUNNING: [&str; 7] = ["exec", "serve", "acp", "resume", "tool", "demo", "task"];

/// Start of a program: arguments, directory and environment.
pub struct Invocation<'a> {
    pub program: &'a str,
    pub arguments: Vec<String>,
    pub directory: PathBuf,
    pub environment: Vec<(String, String)>,
}

impl Project {
    /// Creates an empty project without API keys.
    pub fn empty() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// Creates an empty project outside `/tmp`, unless the build directory is in `/tmp`. `AYE_TEST_DIR` names another
    /// parent directory.
    pub fn outside_tmp() -> Self {
        let place = std::env::var("AYE_TEST_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
        let project = Self::below(std::path::Path::new(&place));
        // Ends the search for repositories, because the repository of aye contains the projects of other tests.
        fs::create_dir(project.directory(".git")).unwrap();
        project
    }

    fn below(directory: &std::path::Path) -> Self {
        let root = tempfile::Builder::new().prefix("aye-e2e-").tempdir_in(directory).unwrap();
        for directory in ["work", "home", "config", "data"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        let mut project = Self { root, environment: Vec::new(), approves_effects: false };
        for (name, directory) in [("HOME", "home"), ("AYE_CONFIG_DIR", "config"), ("AYE_DATA_DIR", "data")] {
            let path = project.directory(directory).display().to_string();
            project = project.env(name, &path);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        project.env("PATH", &path).env("LANG", "C.UTF-8").env("TERM", "xterm-256color").env("COLORTERM", "truecolor")
    }

    /// Creates a project that uses the scripted server as Anthropic API.
    pub fn with(server: &Server) -> Self {
        Self::empty().env("ANTHROPIC_API_KEY", "sk-ant-scripted").env("ANTHROPIC_BASE_URL", &server.url())
    }

    /// Returns the project of a user who starts aye for the first time and has not chosen what needs approval.
    pub fn at_first_start(self) -> Self {
        self.approving_effects()
    }

    /// Creates a project outside `/tmp` that uses the scripted server as Anthropic API.
    pub fn outside_tmp_with(server: &Server) -> Self {
        Self::outside_tmp().env("ANTHROPIC_API_KEY", "sk-ant-scripted").env("ANTHROPIC_BASE_URL", &server.url())
    }

    /// Creates a project that uses the scripted server as OpenAI API.
    pub fn with_chat(server: &Server) -> Self {
        Self::empty().env("OPENAI_API_KEY", "sk-scripted").env("OPENAI_BASE_URL", &format!("{}/v1", server.url()))
    }

    /// Returns the same project, connected to another scripted server.
    pub fn connected_to(mut self, server: &Server) -> Self {
        let url = server.url();
        let known = self.environment.iter_mut().find(|(name, _)| name == "ANTHROPIC_BASE_URL");
        known.unwrap_or_else(|| panic!("the project uses no server")).1 = url;
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn file(self, path: &str, content: &str) -> Self {
        self.bytes(path, content.as_bytes())
    }

    pub fn bytes(self, path: &str, content: &[u8]) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Uses the default of `[approval] approve`: the effects of commands without a rule are approved, not the commands.
    pub fn approving_effects(self) -> Self {
        Self { approves_effects: true, ..self }
    }

    /// Returns the arguments, with the approval setting added for subcommands that run tools.
    fn with_settings(&self, arguments: &[&str]) -> Vec<String> {
        let runs = arguments.first().is_none_or(|first| RUNNING.contains(first) || first.starts_with('-') || first.contains(' '));
        let is_version = arguments.iter().any(|word| ["--version", "-V", "--help", "-h"].contains(word));
        let set: &[&str] =
            if runs && !is_version && !self.approves_effects { &["--set", "approval.approve=command"] } else { &[] };
        set.iter().chain(arguments).map(|&word| word.to_owned()).collect()
    }

    /// Writes the user's `config.toml`.
    pub fn config(self, text: &str) -> Self {
        fs::write(self.directory("config").join("config.toml"), text).unwrap();
        self
    }

    /// Writes the user's `policy.toml`.
    pub fn policy(self, text: &str) -> Self {
        fs::write(self.directory("config").join("policy.toml"), text).unwrap();
        self
    }

    /// Allows everything that would need approval.
    pub fn allowing_everything(self) -> Self {
        self.policy(OPEN_POLICY)
    }

    /// Shortens the delays between retries.
    pub fn with_quick_retries(self) -> Self {
        self.config("[llm]\nmax_retries = 3\nretry_base_ms = 5\nidle_timeout_seconds = 1\n")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join("work").join(path)
    }

    /// Returns the path of a directory next to the project: `home`, `config` or `data`.
    pub fn directory(&self, directory: &str) -> PathBuf {
        self.root.path().join(directory)
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Runs aye to its end.
    #[track_caller]
    pub fn aye(&self, arguments: &[&str]) -> Output {
        self.start(arguments).finish()
    }

    /// Runs aye to its end with this text on stdin.
    #[track_caller]
    pub fn aye_with_input(&self, arguments: &[&str], input: &str) -> Output {
        Running::start(&self.invocation(arguments), Some(input)).finish()
    }

    /// Starts aye without a terminal.
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&self.invocation(arguments), None)
    }

    /// Starts aye in a terminal of 100x30 cells, with `--trust`.
    pub fn open(&self, arguments: &[&str]) -> Terminal {
        let mut all = vec!["--trust"];
        all.extend(arguments);
        self.open_sized(&all, 100, 30)
    }

    pub fn open_sized(&self, arguments: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::start(&self.invocation(arguments), columns, rows)
    }

    /// Starts another program in a terminal, with the same environment.
    pub fn open_program(&self, program: &'static str, arguments: &[&str]) -> Terminal {
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        Terminal::start(&Invocation { program, arguments, ..self.invocation(&[]) }, 100, 30)
    }

    /// Runs another program to its end without a terminal, with the same environment.
    #[track_caller]
    pub fn run_program(&self, program: &str, arguments: &[&str]) -> Output {
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        Running::start(&Invocation { program, arguments, ..self.invocation(&[]) }, None).finish()
    }

    /// Starts another program without a terminal, with the same environment.
    pub fn start_program(&self, program: &str, arguments: &[&str]) -> Running {
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        Running::start(&Invocation { program, arguments, ..self.invocation(&[]) }, None)
    }

    /// Returns a command that starts aye with this environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(AYE);
        super::process::restore_hangup_signal(&mut command);
        command.args(self.with_settings(arguments)).current_dir(self.path("")).env_clear().envs(self.environment.iter().cloned());
        command
    }

    fn invocation(&self, arguments: &[&str]) -> Invocation<'static> {
        Invocation {
            program: AYE,
            arguments: self.with_settings(arguments),
            directory: self.path(""),
            environment: self.environment.clone(),
        }
    }

    /// Returns the environment variables of the binary.
    pub fn environment(&self) -> Vec<(String, String)> {
        self.environment.clone()
    }
}

const OPEN_POLICY: &str = r#"
schema_version = 1
bundle_version = "test"

[capabilities."File.Read"]
allowed_paths = ["${workspace}"]

[capabilities."File.Write"]
allowed_paths = ["${workspace}"]
requires_approval = false

[capabilities."Shell.Exec"]
requires_approval = false
sandbox = "off"
"#;
