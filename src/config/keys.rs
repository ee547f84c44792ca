//! Every key of the configuration: its type, its default, its meaning.

/// What may stand at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// `provider/name`.
    ModelName,
    Flag,
    Number {
        min: u64,
        max: u64,
    },
    /// A number of bytes, or a text such as `10MB`.
    Size,
    /// Dollars; kept in millionths of one.
    Dollars,
    Choice(&'static [&'static str]),
    TextList,
    /// Ports of this machine; kept as texts.
    PortList,
    /// Names and texts.
    TextTable,
}

pub(super) struct Key {
    /// `*` stands for a name the person chooses.
    pub pattern: &'static [&'static str],
    pub kind: Kind,
    /// As TOML; empty where nothing is set.
    pub default: &'static str,
    pub doc: &'static str,
}

const fn key(pattern: &'static [&'static str], kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { pattern, kind, default, doc }
}

pub(super) const APIS: [&str; 4] = ["anthropic", "openai-responses", "openai-chat", "gemini"];

const EFFORTS: [&str; 4] = ["off", "low", "medium", "high"];
/// More tokens than anybody uses up.
const TOKENS: Kind = Kind::Number { min: 1, max: 1_000_000_000_000 };
const STEPS: Kind = Kind::Number { min: 1, max: 1_000_000 };

pub(super) const CONFLICTS: [&str; 3] = ["local-first", "mcp-first", "error"];
/// `auto`, and the shells of `sys::process`.
const SHELLS: [&str; 9] = ["auto", "bash", "sh", "dash", "ksh", "zsh", "fish", "pwsh", "cmd"];

pub(super) const KEYS: &[Key] = &[
    key(&["model", "default"], Kind::ModelName, "", "the model of new sessions; unset: by the keys in the environment"),
    key(
        &["model", "effort"],
        Kind::Choice(&EFFORTS),
        "",
        "how hard a model thinks that can be told so; unset: as it does by itself",
    ),
    key(&["budget", "session_cost_usd"], Kind::Dollars, "", "dollars a session may cost; no request is sent that would pass it"),
    key(&["budget", "session_tokens"], TOKENS, "", "tokens a session may use, input and output"),
    key(&["budget", "session_steps"], STEPS, "", "requests to the model that a session may make"),
    key(&["budget", "task_cost_usd"], Kind::Dollars, "", "dollars a task may cost"),
    key(&["budget", "task_tokens"], TOKENS, "", "tokens a task may use, input and output"),
    key(&["budget", "task_steps"], STEPS, "1000", "requests to the model that a task may make; the same as --max-steps"),
    key(&["providers", "*", "api"], Kind::Choice(&APIS), "", "the language the server speaks"),
    key(&["providers", "*", "base_url"], Kind::Text, "", "where it is; https, or http on this machine"),
    key(&["providers", "*", "api_key_env"], Kind::Text, "", "the environment variable that holds its key"),
    key(&["providers", "*", "models"], Kind::TextList, "[]", "names of its models; the first is its default"),
    key(
        &["auth", "keyring"],
        Kind::Flag,
        "true",
        "false: `aye auth login` keeps keys in credentials.toml, also where the system has a keyring",
    ),
    key(
        &["llm", "idle_timeout_seconds"],
        Kind::Number { min: 1, max: 3600 },
        "120",
        "a stream that says nothing for so long is cut",
    ),
    key(&["llm", "connect_timeout_seconds"], Kind::Number { min: 1, max: 600 }, "10", "how long to wait for a connection"),
    key(&["llm", "max_retries"], Kind::Number { min: 0, max: 100 }, "3", "how often a request that failed is sent again"),
    key(
        &["llm", "retry_base_ms"],
        Kind::Number { min: 1, max: 60_000 },
        "500",
        "the wait before the first retry; doubled for each one after",
    ),
    key(
        &["llm", "local_ports"],
        Kind::PortList,
        "[11434, 1234, 8080, 8000, 4000]",
        "where servers of models on this machine are looked for: Ollama, LM Studio, llama.cpp, vLLM, LiteLLM; []: nowhere",
    ),
    key(
        &["context", "compact_at_percent"],
        Kind::Number { min: 0, max: 95 },
        "80",
        "when a conversation fills so much of the model's window, its older messages are summed up; 0: never by itself",
    ),
    key(&["ui", "plain"], Kind::Flag, "false", "append-only lines; accepted, not used by this version"),
    key(&["tools", "absolute_paths_only"], Kind::Flag, "false", "true refuses relative paths in the arguments of tools"),
    key(&["tools", "follow_symlinks"], Kind::Flag, "true", "false refuses every path with a link in it"),
    key(&["tools", "disabled"], Kind::TextList, "[]", "tools that are not to be had: names, aliases, patterns such as \"Cli*\""),
    key(&["tools", "enabled"], Kind::TextList, "", "the only tools that are to be had; unset: all"),
    key(
        &["tools", "conflict"],
        Kind::Choice(&CONFLICTS),
        "\"local-first\"",
        "which tool a bare name means that one here and one of an MCP server have; accepted, no server brings tools yet",
    ),
    key(
        &["tools", "text", "enabled"],
        Kind::Flag,
        "true",
        "false takes away TextInspect, TextPatch, TextRead, TextCreate, TextSearch and TextDelete",
    ),
    key(
        &["tools", "text", "allowed_extensions"],
        Kind::TextList,
        "[]",
        "the only kinds of files these tools touch, such as [\".md\", \".txt\"]; empty: all that the policy allows",
    ),
    key(
        &["tools", "text", "max_file_size"],
        Kind::Size,
        "",
        "the largest file these tools read or write; unset: as the policy says",
    ),
    key(&["tools", "text", "allow_create"], Kind::Flag, "true", "false keeps TextCreate from making new files"),
    key(&["tools", "text", "allow_delete"], Kind::Flag, "true", "false keeps TextDelete from deleting files"),
    key(
        &["tools", "shell"],
        Kind::Choice(&SHELLS),
        "\"auto\"",
        "what reads the lines of commands; auto is bash, of which rules speak: in another one every line asks",
    ),
    key(
        &["approval", "timeout_seconds"],
        Kind::Number { min: 1, max: 86_400 },
        "300",
        "how long a question of `aye serve` waits; accepted, not used by this version",
    ),
    key(
        &["retention", "days"],
        Kind::Number { min: 1, max: 36_500 },
        "",
        "forget sessions after so many days; accepted, not used by this version",
    ),
    key(&["mcp", "servers", "*", "command"], Kind::Text, "", "the program of the server; accepted, not used by this version"),
    key(&["mcp", "servers", "*", "args"], Kind::TextList, "[]", "its arguments; accepted, not used by this version"),
    key(&["mcp", "servers", "*", "env"], Kind::TextTable, "{}", "its environment; accepted, not used by this version"),
    key(&["mcp", "servers", "*", "url"], Kind::Text, "", "where it listens; accepted, not used by this version"),
];

impl Key {
    fn fits(&self, path: &[String]) -> bool {
        self.pattern.len() == path.len() && self.starts_with(path)
    }

    /// Whether `path` is this key or a table it stands in.
    pub(super) fn starts_with(&self, path: &[String]) -> bool {
        self.pattern.len() >= path.len() && self.pattern.iter().zip(path).all(|(want, have)| *want == "*" || want == have)
    }

    pub(super) fn dotted(&self) -> String {
        self.pattern.join(".").replace('*', "NAME")
    }
}

pub(super) fn find(path: &[String]) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.fits(path))
}

impl Kind {
    /// What is expected, in words.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Text => "a text in quotes".to_owned(),
            Self::ModelName => "a text like \"anthropic/claude-sonnet-5\"".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::Dollars => "a number of dollars, such as 5 or 0.50".to_owned(),
            Self::Size => "a number of bytes, or a text like \"10MB\"".to_owned(),
            Self::Choice(choices) => {
                format!("one of {}", choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(", "))
            }
            Self::TextList => "a list of texts in quotes".to_owned(),
            Self::PortList => "a list of ports, such as [11434, 8080]".to_owned(),
            Self::TextTable => "a table of names and texts".to_owned(),
        }
    }
}

/// What to say about a key that does not exist: the nearest one, or all that may stand there.
pub(super) fn suggest(path: &[String]) -> String {
    let Some((wrong, table)) = path.split_last() else { return String::new() };
    let mut here: Vec<&str> = KEYS
        .iter()
        .filter(|key| key.pattern.len() > table.len() && key.starts_with(table))
        .filter_map(|key| key.pattern.get(table.len()).copied())
        .filter(|name| *name != "*")
        .collect();
    here.dedup();
    let near = |name: &str| strsim::damerau_levenshtein(name, wrong);
    if let Some(nearest) = here.iter().filter(|name| near(name) <= 1 + name.len() / 4).min_by_key(|name| near(name)) {
        let mut path = table.to_vec();
        path.push((*nearest).to_owned());
        return format!("did you mean `{}`?", path.join("."));
    }
    let elsewhere = KEYS.iter().find(|key| key.pattern.last().is_some_and(|last| last == wrong));
    if let Some(key) = elsewhere {
        return format!("did you mean `{}`?", key.dotted());
    }
    let mut names: Vec<String> = here.iter().map(|name| format!("`{name}`")).collect();
    names.sort_unstable();
    names.dedup();
    format!("expected {}", names.join(", "))
}

/// The table as text, for `aye config schema`.
pub fn schema() -> String {
    let entries = KEYS.iter().map(|key| {
        let default = if key.default.is_empty() { "unset" } else { key.default };
        format!("{}\n    {}; default {default}\n    {}\n", key.dotted(), key.kind.describe(), key.doc)
    });
    entries.collect::<Vec<_>>().concat()
}
