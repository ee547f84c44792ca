//! Schema of the configuration: every key with its type, default and meaning.

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
    /// Names and numbers; kept as texts.
    NumberTable {
        min: u64,
        max: u64,
    },
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

/// A budget on the disk.
const MEGABYTES: Kind = Kind::Number { min: 1, max: 100_000_000 };

/// There is no `off`.
const GUARDS: [&str; 2] = ["standard", "strict"];
const APPROVES: [&str; 2] = ["command", "effects"];

pub(super) const CONFLICTS: [&str; 3] = ["local-first", "mcp-first", "error"];
const SERVER_KINDS: [&str; 3] = ["auto", "http", "sse"];
const MAX_SECONDS: u64 = 86_400;
const SECONDS: Kind = Kind::Number { min: 1, max: MAX_SECONDS };
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
    key(
        &["ui", "plain"],
        Kind::Flag,
        "false",
        "lines in place of the screen, for screen readers and dumb terminals; the same as --plain",
    ),
    key(
        &["ui", "mouse"],
        Kind::Flag,
        "true",
        "false leaves the mouse to the terminal, for its own selection; ctrl+s changes it while aye runs",
    ),
    key(
        &["ui", "theme"],
        Kind::Text,
        "\"auto\"",
        "colours: a built-in theme, or a file in themes/ without .toml; auto: light or dark, as the terminal's background is",
    ),
    key(
        &["ui", "ascii"],
        Kind::Flag,
        "",
        "true: signs without Unicode; unset: where the locale is not UTF-8, and on the Linux console",
    ),
    key(
        &["ui", "reduce_motion"],
        Kind::Flag,
        "false",
        "text comes in whole rows, and nothing moves that need not; the same as AYE_REDUCE_MOTION=1",
    ),
    key(
        &["ui", "vim"],
        Kind::Flag,
        "false",
        "Vim's keys for the draft: esc leaves the typing; /vim turns it on and off while aye runs",
    ),
    key(
        &["ui", "notifications"],
        Kind::Choice(&super::screen::NOTIFICATIONS),
        "\"auto\"",
        "while the terminal's window has not the keyboard: a notice of the desktop once something waits or has ended, a bell, or nothing",
    ),
    key(
        &["status", "items"],
        Kind::TextList,
        "[\"model\", \"context\", \"cost\", \"mode\", \"sandbox\", \"branch\", \"directory\", \"command\"]",
        "what the status row shows, in this order; the mode, and a sandbox that is off, are always there",
    ),
    key(
        &["status", "command"],
        Kind::Text,
        "",
        "a line for sh, run in the workspace after steps that changed something; the first line it prints stands in the status row",
    ),
    key(&["tools", "absolute_paths_only"], Kind::Flag, "false", "true refuses relative paths in the arguments of tools"),
    key(&["tools", "follow_symlinks"], Kind::Flag, "true", "false refuses every path with a link in it"),
    key(&["tools", "disabled"], Kind::TextList, "[]", "tools that are not to be had: names, aliases, patterns such as \"Cli*\""),
    key(&["tools", "enabled"], Kind::TextList, "", "the only tools that are to be had; unset: all"),
    key(
        &["tools", "on_demand"],
        Kind::Flag,
        "true",
        "false offers the model all tools from the start, also those that it otherwise loads with FindTools",
    ),
    key(
        &["tools", "conflict"],
        Kind::Choice(&CONFLICTS),
        "\"local-first\"",
        "which tool a bare name means that one here and one of an MCP server have; error: none, until the name says which",
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
        "[\".md\", \".txt\"]",
        "the only kinds of files these tools touch, a name without extension counts as .txt; empty: all that the policy allows",
    ),
    key(&["tools", "text", "max_file_size"], Kind::Size, "\"10MB\"", "the largest file these tools read or write"),
    key(&["tools", "text", "allow_create"], Kind::Flag, "true", "false keeps TextCreate from making new files"),
    key(&["tools", "text", "allow_delete"], Kind::Flag, "false", "true lets TextDelete delete files"),
    key(
        &["tools", "shell"],
        Kind::Choice(&SHELLS),
        "\"auto\"",
        "what reads the lines of commands; auto is bash, of which rules speak: in another one every line asks",
    ),
    key(
        &["approval", "guard"],
        Kind::Choice(&GUARDS),
        "\"standard\"",
        "how an answer is told from typing; strict: every answer is its key and Enter, and no time counts, for switch access, screen readers and slow typists",
    ),
    key(
        &["approval", "approve"],
        Kind::Choice(&APPROVES),
        "\"command\"",
        "commands that no rule decides: command asks before each runs; effects runs it in a layer first and asks if it would change files; a policy that says command stays stricter",
    ),
    key(
        &["approval", "arming_ms"],
        Kind::Number { min: 300, max: 3000 },
        "500",
        "how long an approval is on the screen before a key can answer it, for terminals that do not report what they have drawn",
    ),
    key(
        &["approval", "timeout_seconds"],
        Kind::Number { min: 1, max: 86_400 },
        "300",
        "how long a question of `aye serve` and `aye acp` waits for its answer before it counts as denied; a policy may say less",
    ),
    key(
        &["retention", "session_days"],
        Kind::Number { min: 0, max: 36_500 },
        "90",
        "sessions that nobody used for so many days are forgotten; 0: never",
    ),
    key(&["retention", "days"], Kind::Number { min: 1, max: 36_500 }, "", "another name of session_days, which wins"),
    key(
        &["retention", "sessions_mb"],
        MEGABYTES,
        "1024",
        "of all sessions together; beyond it those that nobody used for longest go",
    ),
    key(&["retention", "artifacts_mb"], MEGABYTES, "1024", "of long outputs, images and files that are kept beside sessions"),
    key(&["retention", "snapshots_mb"], MEGABYTES, "4096", "of files as they were before a session changed them"),
    key(
        &["retention", "caches_mb"],
        MEGABYTES,
        "8192",
        "of what commands put into caches of package managers, which only aye sees",
    ),
    key(&["retention", "logs_mb"], MEGABYTES, "64", "of the log"),
    key(
        &["mcp", "defer_over"],
        Kind::Number { min: 0, max: 100 },
        "10",
        "when the definitions of the tools of MCP servers fill more than so many percent of the model's window, they are loaded on demand; 0: always on demand",
    ),
    key(&["mcp", "servers", "*", "command"], Kind::Text, "", "the program of the server; it, or its url"),
    key(&["mcp", "servers", "*", "args"], Kind::TextList, "[]", "its arguments"),
    key(
        &["mcp", "servers", "*", "env"],
        Kind::TextTable,
        "{}",
        "on top of the environment that commands have; ${VAR} in a value is read from the environment",
    ),
    key(&["mcp", "servers", "*", "cwd"], Kind::Text, "", "where the program runs; unset: in the workspace"),
    key(
        &["mcp", "servers", "*", "network"],
        Kind::Flag,
        "false",
        "whether the program may reach the network, whatever commands may; a server that `npx` fetches needs it",
    ),
    key(&["mcp", "servers", "*", "url"], Kind::Text, "", "where it listens: https, or http on this machine"),
    key(
        &["mcp", "servers", "*", "type"],
        Kind::Choice(&SERVER_KINDS),
        "\"auto\"",
        "how it speaks: http (streamable), sse (the older event stream), or as it turns out",
    ),
    key(
        &["mcp", "servers", "*", "headers"],
        Kind::TextTable,
        "{}",
        "sent with every request; ${VAR} in a value is read from the environment, which is where secrets belong",
    ),
    key(&["mcp", "servers", "*", "bearer_token_env"], Kind::Text, "", "the environment variable that holds its bearer token"),
    key(&["mcp", "servers", "*", "enabled"], Kind::Flag, "true", "false leaves the server alone"),
    key(
        &["mcp", "servers", "*", "retry_attempts"],
        Kind::Number { min: 0, max: 20 },
        "3",
        "how often a connection that failed is tried again",
    ),
    key(
        &["mcp", "servers", "*", "retry_delay_ms"],
        Kind::Number { min: 1, max: 60_000 },
        "1000",
        "the wait before the first of them; doubled for each one after",
    ),
    key(
        &["mcp", "servers", "*", "start_timeout_seconds"],
        SECONDS,
        "30",
        "how long it may take until it is ready; nothing else waits for it",
    ),
    key(&["mcp", "servers", "*", "timeout_seconds"], SECONDS, "60", "how long a call of one of its tools may take"),
    key(
        &["mcp", "servers", "*", "tool_timeouts"],
        Kind::NumberTable { min: 1, max: MAX_SECONDS },
        "{}",
        "the same for single tools: { build = 600 }",
    ),
    key(
        &["mcp", "servers", "*", "oauth", "client_id"],
        Kind::Text,
        "",
        "the client that `aye mcp login` says it is, or the https address of its metadata document; unset: it registers itself",
    ),
    key(
        &["mcp", "servers", "*", "oauth", "scopes"],
        Kind::TextList,
        "[]",
        "what it asks leave for; empty: what the server says is needed",
    ),
    key(
        &["mcp", "servers", "*", "oauth", "redirect_port"],
        Kind::Number { min: 1, max: 65_535 },
        "",
        "the port of 127.0.0.1 that the browser comes back to; unset: any that is free",
    ),
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
            Self::NumberTable { min, max } => format!("a table of names and whole numbers from {min} to {max}"),
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
