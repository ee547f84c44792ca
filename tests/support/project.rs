//! A project in a temporary directory, with its own home, config and data directories beside it.

use super::server::Server;
use super::{Output, Running, Terminal};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The binary under test.
const AYE: &str = env!("CARGO_BIN_EXE_aye");

/// What a user has before starting aye.
pub struct Project {
    root: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

/// One start of the binary: where, with what.
pub struct Invocation<'a> {
    pub program: &'a str,
    pub arguments: Vec<String>,
    pub directory: PathBuf,
    pub environment: Vec<(String, String)>,
}

impl Project {
    /// An empty project that knows no key.
    pub fn empty() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// The same where `/tmp` is not above it, unless all of this lies there; `AYE_TEST_DIR` names another place.
    pub fn outside_tmp() -> Self {
        let place = std::env::var("AYE_TEST_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
        Self::below(std::path::Path::new(&place))
    }

    fn below(directory: &std::path::Path) -> Self {
        let root = tempfile::Builder::new().prefix("aye-e2e-").tempdir_in(directory).unwrap();
        for directory in ["work", "home", "config", "data"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        let mut project = Self { root, environment: Vec::new() };
        for (name, directory) in [("HOME", "home"), ("AYE_CONFIG_DIR", "config"), ("AYE_DATA_DIR", "data")] {
            let path = project.beside(directory).display().to_string();
            project = project.env(name, &path);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        project.env("PATH", &path).env("LANG", "C.UTF-8").env("TERM", "xterm-256color").env("COLORTERM", "truecolor")
    }

    /// A project whose Anthropic is the scripted server.
    pub fn with(server: &Server) -> Self {
        Self::empty().env("ANTHROPIC_API_KEY", "sk-ant-scripted").env("ANTHROPIC_BASE_URL", &server.url())
    }

    /// `with`, for a project that is not below `/tmp`.
    pub fn outside_tmp_with(server: &Server) -> Self {
        Self::outside_tmp().env("ANTHROPIC_API_KEY", "sk-ant-scripted").env("ANTHROPIC_BASE_URL", &server.url())
    }

    /// A project whose OpenAI-compatible server is the scripted one.
    pub fn with_chat(server: &Server) -> Self {
        Self::empty().env("OPENAI_API_KEY", "sk-scripted").env("OPENAI_BASE_URL", &format!("{}/v1", server.url()))
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

    /// The person's `config.toml`.
    pub fn config(self, text: &str) -> Self {
        fs::write(self.beside("config").join("config.toml"), text).unwrap();
        self
    }

    /// The person's `policy.toml`.
    pub fn policy(self, text: &str) -> Self {
        fs::write(self.beside("config").join("policy.toml"), text).unwrap();
        self
    }

    /// Everything that would ask is allowed.
    pub fn without_questions(self) -> Self {
        self.policy(OPEN_POLICY)
    }

    /// Retries that do not make a test wait.
    pub fn with_quick_retries(self) -> Self {
        self.config("[llm]\nmax_retries = 3\nretry_base_ms = 5\nidle_timeout_seconds = 1\n")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join("work").join(path)
    }

    /// `home`, `config`, `data`: what stands beside the project.
    pub fn beside(&self, directory: &str) -> PathBuf {
        self.root.path().join(directory)
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn aye(&self, arguments: &[&str]) -> Output {
        self.start(arguments).finish()
    }

    /// Runs it to its end with this on stdin.
    #[track_caller]
    pub fn aye_with_input(&self, arguments: &[&str], input: &str) -> Output {
        Running::start(&self.invocation(arguments), Some(input)).finish()
    }

    /// Starts it without a terminal.
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&self.invocation(arguments), None)
    }

    /// Starts it in a terminal of 100 by 30, the directory trusted.
    pub fn open(&self, arguments: &[&str]) -> Terminal {
        let mut all = vec!["--trust"];
        all.extend(arguments);
        self.open_sized(&all, 100, 30)
    }

    pub fn open_sized(&self, arguments: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::start(&self.invocation(arguments), columns, rows)
    }

    /// Another program in the same surroundings.
    pub fn open_program(&self, program: &'static str, arguments: &[&str]) -> Terminal {
        Terminal::start(&Invocation { program, ..self.invocation(arguments) }, 100, 30)
    }

    /// Runs another program in the same surroundings to its end, without a terminal.
    #[track_caller]
    pub fn run_program(&self, program: &'static str, arguments: &[&str]) -> Output {
        Running::start(&Invocation { program, ..self.invocation(arguments) }, None).finish()
    }

    /// The binary in its surroundings, to be started by other means.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(AYE);
        super::process::hears_hang_ups(&mut command);
        command.args(arguments).current_dir(self.path("")).env_clear().envs(self.environment.iter().cloned());
        command
    }

    fn invocation(&self, arguments: &[&str]) -> Invocation<'static> {
        Invocation {
            program: AYE,
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            directory: self.path(""),
            environment: self.environment.clone(),
        }
    }

    /// What the binary would find in its environment.
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
