//! Configuration schema, which lists every key with its type, default and meaning.

use serde_json::{Map, Value, json};

/// Type of a configuration value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Text,
    /// Model name in the form `provider/name`.
    ModelName,
    /// Model names, which are stored as a list.
    ModelNames,
    Flag,
    Number {
        min: u64,
        max: u64,
    },
    /// Number of bytes, or a string such as `10MB`.
    Size,
    /// Amount in US dollars, which is stored in millionths.
    Dollars,
    /// Input and output price in US dollars per million tokens, such as `3,15`.
    Price,
    Choice(&'static [&'static str]),
    TextList,
    /// List of local ports, which are stored as strings.
    PortList,
    /// Table whose values are strings.
    TextTable,
    /// Table whose values are numbers, which are stored as strings.
    NumberTable {
        min: u64,
        max: u64,
    },
}

pub(super) struct ConfigKey {
    /// Path of the key, in which `*` stands for a name chosen by the user.
    pub pattern: &'static [&'static str],
    pub kind: ValueType,
    /// Default value in TOML. Empty if the key has no default.
    pub default: &'static str,
    pub doc: &'static str,
}

const fn key(pattern: &'static [&'static str], kind: ValueType, default: &'static str, doc: &'static str) -> ConfigKey {
    ConfigKey { pattern, kind, default, doc }
}

pub(super) const APIS: [&str; 4] = ["anthropic", "openai-responses", "openai-chat", "gemini"];

/// Cloud platform services, which are also the names of built-in providers.
pub(super) const SERVICES: [&str; 3] = ["azure", "vertex", "bedrock"];

/// Names of the variants of `protocol::Effort`. `none` is an alias for `off`.
const EFFORTS: [&str; 8] = ["off", "none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// Number of tokens, whose maximum is higher than any realistic value.
const TOKENS: ValueType = ValueType::Number { min: 1, max: 1_000_000_000_000 };
const STEPS: ValueType = ValueType::Number { min: 1, max: 1_000_000 };

/// Disk space limit in megabytes.
const MEGABYTES: ValueType = ValueType::Number { min: 1, max: 100_000_000 };

/// Values of `approval.guard`, which offers no way to turn the guard off.
const GUARDS: [&str; 2] = ["standard", "strict"];
const SEARCH_PROVIDERS: [&str; 4] = ["model", "searxng", "brave", "tavily"];
const NOTIFICATIONS: [&str; 3] = ["auto", "off", "bell"];
const APPROVES: [&str; 2] = ["command", "effects"];
/// Names of the variants of `protocol::Mode`.
const MODES: [&str; 4] = ["plan", "ask", "auto-edit", "auto"];

pub(super) const CONFLICTS: [&str; 3] = ["local-first", "mcp-first", "error"];
const ENCRYPTIONS: [&str; 3] = ["AES256", "aws:kms", "aws:kms:dsse"];
const SERVER_KINDS: [&str; 3] = ["auto", "http", "sse"];
const MAX_SECONDS: u64 = 86_400;
const SECONDS: ValueType = ValueType::Number { min: 1, max: MAX_SECONDS };
/// `auto`, and the shells supported by `sys::process`.
const SHELLS: [&str; 9] = ["auto", "bash", "sh", "dash", "ksh", "zsh", "fish", "pwsh", "cmd"];

pub(super) const KEYS: &[ConfigKey] = &[
    key(&["model", "default"], ValueType::ModelName, "", "model of new sessions; unset: chosen by the available API keys"),
    key(&["model", "main"], ValueType::ModelName, "", "the same as model.default; set only one of them"),
    key(
        &["model", "summary"],
        ValueType::ModelName,
        "",
        "model that writes the summaries of long conversations; unset: model.small, or else the model in use",
    ),
    key(
        &["model", "small"],
        ValueType::ModelName,
        "",
        "model for small requests outside the conversation; currently the same as model.summary, which takes precedence",
    ),
    key(
        &["model", "fallback"],
        ValueType::ModelNames,
        "[]",
        "fallback models, in order, that finish a task if the current model's provider is overloaded after all retries; the next \
        task starts with the selected model",
    ),
    key(
        &["model", "effort"],
        ValueType::Choice(&EFFORTS),
        "",
        "reasoning effort, for models that support it: aye uses the nearest supported level; none: same as off; unset: the model's \
        default",
    ),
    key(
        &["budget", "session_cost_usd"],
        ValueType::Dollars,
        "",
        "maximum cost of a session in US dollars; a request that \
        would exceed it is not sent",
    ),
    key(&["budget", "session_tokens"], TOKENS, "", "maximum number of tokens in a session, input and output"),
    key(&["budget", "session_steps"], STEPS, "", "maximum number of model requests in a session"),
    key(&["budget", "task_cost_usd"], ValueType::Dollars, "", "maximum cost of a task in US dollars"),
    key(&["budget", "task_tokens"], TOKENS, "", "maximum number of tokens in a task, input and output"),
    key(
        &["budget", "assumed_price"],
        ValueType::Price,
        "",
        "price of models whose price is unknown, in US dollars per million tokens, input and output: \"3,15\"; without it, \
        nothing is sent to such a model if there is a budget in dollars",
    ),
    key(&["budget", "task_steps"], STEPS, "1000", "maximum number of model requests in a task; the same as --max-steps"),
    key(
        &["models", "catalogue_url"],
        ValueType::Text,
        "",
        "list of models for `aye models update`: the URL of a catalogue in TOML or of the models.dev JSON",
    ),
    key(
        &["models", "check_daily"],
        ValueType::Flag,
        "false",
        "true: check once a day whether the list at catalogue_url has changed, and report it; nothing is updated",
    ),
    key(
        &["update", "url"],
        ValueType::Text,
        "",
        "release index for `aye update --check`; https, or http on this machine; unset: the index built into this release",
    ),
    key(&["profiles", "*", "model"], ValueType::ModelName, "", "model, as with -m, if `--profile NAME` chooses the profile"),
    key(&["profiles", "*", "mode"], ValueType::Choice(&MODES), "", "mode, as with --mode"),
    key(&["profiles", "*", "effort"], ValueType::Choice(&EFFORTS), "", "reasoning effort, as with --effort"),
    key(
        &["profiles", "*", "policy"],
        ValueType::Text,
        "",
        "policy file, as with --policy; relative paths start at the directory of config.toml",
    ),
    key(&["profiles", "*", "max_steps"], STEPS, "", "maximum number of model requests in a task, as with --max-steps"),
    key(
        &["profiles", "*", "max_budget_usd"],
        ValueType::Dollars,
        "",
        "maximum cost of a session in US dollars, as with --max-budget-usd",
    ),
    key(&["providers", "*", "api"], ValueType::Choice(&APIS), "", "API of the server"),
    key(&["providers", "*", "base_url"], ValueType::Text, "", "base URL; https, or http on this machine"),
    key(&["providers", "*", "api_key_env"], ValueType::Text, "", "environment variable with the API key"),
    key(
        &["providers", "*", "service"],
        ValueType::Choice(&SERVICES),
        "",
        "cloud service that offers the models; unset: the service with the provider's name, if there is one",
    ),
    key(
        &["providers", "*", "api_version"],
        ValueType::Text,
        "",
        "api-version of Azure OpenAI, such as \"2025-04-01-preview\"; unset: the v1 API, which needs none",
    ),
    key(&["providers", "*", "project"], ValueType::Text, "", "Vertex AI project; unset: GOOGLE_CLOUD_PROJECT"),
    key(
        &["providers", "*", "location"],
        ValueType::Text,
        "",
        "Vertex AI location; unset: GOOGLE_CLOUD_LOCATION, else \"global\"",
    ),
    key(
        &["providers", "*", "region"],
        ValueType::Text,
        "",
        "Amazon Bedrock region; unset: AWS_REGION, else the profile's region",
    ),
    key(
        &["providers", "*", "profile"],
        ValueType::Text,
        "",
        "profile with the AWS credentials; unset: the environment, then AWS_PROFILE, then \"default\"",
    ),
    key(
        &["providers", "*", "deployments"],
        ValueType::TextTable,
        "{}",
        "catalogue entries for models with other names: { my-gpt = \"openai/gpt-5.5\" }",
    ),
    key(
        &["providers", "*", "api_key_command"],
        ValueType::TextList,
        "",
        "program and arguments that print the API key, such as [\"pass\", \"show\", \"mine\"]; run without a shell, when a key is \
        needed",
    ),
    key(
        &["providers", "*", "api_key_lifetime_seconds"],
        ValueType::Number { min: 1, max: 31_536_000 },
        "",
        "time after which api_key_command runs again; unset: only when the provider rejects the key",
    ),
    key(
        &["providers", "*", "headers"],
        ValueType::TextTable,
        "{}",
        "additional headers for every request; ${VAR} in a value is replaced from the environment",
    ),
    key(&["providers", "*", "models"], ValueType::TextList, "[]", "model names; the first one is the default"),
    key(
        &["auth", "keyring"],
        ValueType::Flag,
        "true",
        "false: `aye auth login` saves keys in credentials.toml, even if the system has a keyring",
    ),
    key(
        &["http", "ca_bundle"],
        ValueType::Text,
        "",
        "PEM file with certificate authorities to trust in addition to the system's; relative paths start at the directory of \
        config.toml",
    ),
    key(
        &["llm", "idle_timeout_seconds"],
        ValueType::Number { min: 1, max: 3600 },
        "120",
        "seconds without data after which a response stream is closed",
    ),
    key(&["llm", "connect_timeout_seconds"], ValueType::Number { min: 1, max: 600 }, "10", "seconds to wait for a connection"),
    key(&["llm", "max_retries"], ValueType::Number { min: 0, max: 100 }, "3", "maximum number of retries of a failed request"),
    key(
        &["llm", "retry_base_ms"],
        ValueType::Number { min: 1, max: 60_000 },
        "500",
        "delay before the first retry; doubled for each further retry",
    ),
    key(
        &["llm", "local_ports"],
        ValueType::PortList,
        "[11434, 1234, 8080, 8000, 4000]",
        "ports on which to look for local model servers: Ollama, LM Studio, llama.cpp, vLLM, LiteLLM; []: none",
    ),
    key(
        &["context", "compact_at_percent"],
        ValueType::Number { min: 0, max: 95 },
        "80",
        "context window usage at which older messages are summarized; 0: never automatically",
    ),
    key(&["ui", "plain"], ValueType::Flag, "false", "line-based output instead of the full-screen UI; the same as --plain"),
    key(
        &["ui", "mouse"],
        ValueType::Flag,
        "true",
        "false: the terminal handles the mouse, for its own selection; ctrl+s toggles it while aye runs",
    ),
    key(
        &["ui", "theme"],
        ValueType::Text,
        "\"auto\"",
        "colour theme: a built-in name, or a file in themes/ (name without .toml); auto: match the terminal background",
    ),
    key(
        &["ui", "ascii"],
        ValueType::Flag,
        "",
        "true: no Unicode symbols; unset: true if the locale is not UTF-8, and on the Linux console",
    ),
    key(
        &["ui", "reduce_motion"],
        ValueType::Flag,
        "false",
        "show text in whole rows and avoid animations; the same as AYE_REDUCE_MOTION=1",
    ),
    key(
        &["ui", "vim"],
        ValueType::Flag,
        "false",
        "Vim keys in the draft: esc leaves insert mode; /vim toggles it while aye runs",
    ),
    key(
        &["ui", "notifications"],
        ValueType::Choice(&NOTIFICATIONS),
        "\"auto\"",
        "notification of pending approvals and finished tasks while the terminal is not focused; auto: a desktop notification",
    ),
    key(
        &["status", "items"],
        ValueType::TextList,
        "[\"model\", \"context\", \"cost\", \"mode\", \"sandbox\", \"branch\", \"directory\", \"command\"]",
        "items of the status row, in order; the mode and a disabled sandbox are always shown",
    ),
    key(
        &["status", "command"],
        ValueType::Text,
        "",
        "shell command run in the workspace after steps that changed something; its first line of output is shown in \
        the status row",
    ),
    key(
        &["search", "provider"],
        ValueType::Choice(&SEARCH_PROVIDERS),
        "",
        "web search service; model: the model provider's own search; unset: the same, if the provider offers one",
    ),
    key(
        &["search", "base_url"],
        ValueType::Text,
        "",
        "address of the search service; https, or http on this machine; unset: the service's own, for SearXNG \
        http://localhost:8080",
    ),
    key(
        &["search", "max_per_session"],
        ValueType::Number { min: 1, max: 10_000 },
        "50",
        "maximum number of web searches in a session",
    ),
    key(&["tools", "absolute_paths_only"], ValueType::Flag, "false", "true: reject relative paths in tool arguments"),
    key(&["tools", "follow_symlinks"], ValueType::Flag, "true", "false: reject paths that contain a symlink"),
    key(&["tools", "disabled"], ValueType::TextList, "[]", "tools to disable: names, aliases, patterns such as \"Cli*\""),
    key(&["tools", "enabled"], ValueType::TextList, "", "the only tools to enable; unset: all"),
    key(
        &["tools", "on_demand"],
        ValueType::Flag,
        "true",
        "false: offer all tools to the model from the start, including those it otherwise loads with FindTools",
    ),
    key(
        &["tools", "conflict"],
        ValueType::Choice(&CONFLICTS),
        "\"local-first\"",
        "tool that an unqualified name refers to if a built-in tool and an MCP tool share it; error: neither",
    ),
    key(
        &["tools", "text", "enabled"],
        ValueType::Flag,
        "true",
        "false: disable TextInspect, TextPatch, TextRead, TextCreate, TextSearch and TextDelete",
    ),
    key(
        &["tools", "text", "allowed_extensions"],
        ValueType::TextList,
        "[\".md\", \".txt\"]",
        "file types that these tools may access; no extension is treated as .txt; empty: all that the policy allows",
    ),
    key(
        &["tools", "text", "max_file_size"],
        ValueType::Size,
        "\"10MB\"",
        "maximum size of a file that these tools read or write",
    ),
    key(&["tools", "text", "allow_create"], ValueType::Flag, "true", "false: TextCreate cannot create files"),
    key(&["tools", "text", "allow_delete"], ValueType::Flag, "false", "true: TextDelete can delete files"),
    key(
        &["tools", "shell"],
        ValueType::Choice(&SHELLS),
        "\"auto\"",
        "shell for commands; auto: bash, which the policy rules are written for. In any other shell, aye asks before every command",
    ),
    key(
        &["approval", "guard"],
        ValueType::Choice(&GUARDS),
        "\"standard\"",
        "how aye distinguishes answers from typing; strict: every answer needs its key and Enter, regardless of timing (for \
        switch access, screen readers and slow typists)",
    ),
    key(
        &["approval", "approve"],
        ValueType::Choice(&APPROVES),
        "\"effects\"",
        "for commands without a rule; command: ask before each one; effects: run it in a copy of the workspace first, \
        without network, and ask if it would change files. Where the sandbox has no previews, and in projects that you \
        do not trust, aye asks before each command. A stricter policy takes precedence",
    ),
    key(
        &["approval", "mode"],
        ValueType::Choice(&MODES),
        "\"ask\"",
        "mode in which sessions start, unless --mode is given. Inside a command that aye runs, the mode is ask or stricter",
    ),
    key(
        &["approval", "arming_ms"],
        ValueType::Number { min: 300, max: 3000 },
        "500",
        "how long an approval is shown before a key can answer it, in terminals that do not report what they have drawn",
    ),
    key(
        &["approval", "timeout_seconds"],
        ValueType::Number { min: 1, max: 86_400 },
        "300",
        "time until an unanswered approval of `aye serve` or `aye acp` is denied; the policy may set a shorter one",
    ),
    key(
        &["memory", "enabled"],
        ValueType::Flag,
        "true",
        "collect proposals for instruction files, from the model and from instructions that you repeat",
    ),
    key(
        &["retention", "session_days"],
        ValueType::Number { min: 0, max: 36_500 },
        "90",
        "days without use after which a session is deleted; 0: never",
    ),
    key(
        &["retention", "days"],
        ValueType::Number { min: 1, max: 36_500 },
        "",
        "alias of session_days; session_days takes precedence",
    ),
    key(
        &["retention", "sessions_mb"],
        MEGABYTES,
        "1024",
        "maximum size of all sessions; beyond it, the least recently used ones are deleted",
    ),
    key(
        &["retention", "artifacts_mb"],
        MEGABYTES,
        "1024",
        "maximum size of long outputs, images and files stored \
        with sessions",
    ),
    key(&["retention", "snapshots_mb"], MEGABYTES, "4096", "maximum size of the file versions saved for rewind"),
    key(&["retention", "caches_mb"], MEGABYTES, "8192", "maximum size of the package manager caches that sandboxed commands use"),
    key(
        &["retention", "layers_mb"],
        MEGABYTES,
        "4096",
        "maximum size of the copies whose changes wait for approval in sessions that are not open",
    ),
    key(&["retention", "logs_mb"], MEGABYTES, "64", "maximum size of the logs"),
    key(
        &["services", "backend_tools", "manifest"],
        ValueType::Text,
        "",
        "back-end tool manifest, in TOML; relative paths start at the directory of config.toml; unset: none",
    ),
    key(
        &["services", "policy", "url"],
        ValueType::Text,
        "",
        "policy bundle that every session uses, in addition to the other policies: a .tar.gz on a web server (https, or http on \
        this machine) or in an object store; unset: none",
    ),
    key(
        &["services", "policy", "public_key"],
        ValueType::Text,
        "",
        "PEM file with the RSA, P-256 or P-384 public key that must verify the bundle's signature; relative paths start at the \
        directory of config.toml; unset: no signature is checked, unless `secret_env` is set",
    ),
    key(
        &["services", "policy", "secret_env"],
        ValueType::Text,
        "",
        "environment variable with the shared secret that the bundle must be signed with (HS256, HS384 or HS512), instead of \
        `public_key`",
    ),
    key(&["services", "policy", "token_env"], ValueType::Text, "", "environment variable with a bearer token for the web server"),
    key(
        &["services", "policy", "poll_seconds"],
        ValueType::Number { min: 10, max: MAX_SECONDS },
        "300",
        "time between requests for a newer bundle while a session runs",
    ),
    key(
        &["services", "workspace", "url"],
        ValueType::Text,
        "",
        "object store for sessions: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY; \
        credentials come only from the environment; unset: nothing is uploaded",
    ),
    key(
        &["services", "workspace", "endpoint"],
        ValueType::Text,
        "",
        "address of a compatible server; https, or http on this machine; unset: the address of the cloud platform",
    ),
    key(&["services", "workspace", "region"], ValueType::Text, "", "region of an S3 bucket; unset: AWS_REGION, else us-east-1"),
    key(
        &["services", "workspace", "encryption"],
        ValueType::Choice(&ENCRYPTIONS),
        "",
        "encryption on an S3 server; unset: the bucket's default",
    ),
    key(&["services", "workspace", "kms_key"], ValueType::Text, "", "ID of the key for aws:kms and aws:kms:dsse encryption"),
    key(
        &["services", "workspace", "artifacts"],
        ValueType::Flag,
        "true",
        "false: upload artifacts with the history after each task, and not before their results",
    ),
    key(
        &["services", "outbox", "limit"],
        ValueType::Size,
        "\"1GB\"",
        "maximum size of the records that wait for a service; telemetry is dropped first, oldest first",
    ),
    key(
        &["services", "approvals", "url"],
        ValueType::Text,
        "",
        "address that receives each decision as a signed webhook; https, or http on this machine; unset: none",
    ),
    key(
        &["services", "approvals", "secret"],
        ValueType::Text,
        "",
        "reference to the secret that signs these messages: \"env:NAME\", or \"keyring:approvals\" after `aye auth login approvals`",
    ),
    key(
        &["services", "approvals", "ask"],
        ValueType::Flag,
        "false",
        "true: `aye exec` and `aye serve` ask this service for decisions, up to the risk that the policy allows",
    ),
    key(
        &["services", "audit", "url"],
        ValueType::Text,
        "",
        "OTLP endpoint for audit records, such as \"https://collector:4318\"; \"env\": from the OTEL_EXPORTER_OTLP_* variables; \
        unset: none",
    ),
    key(
        &["services", "audit", "required"],
        ValueType::Flag,
        "false",
        "true: a session pauses before its next effect when audit records reach the outbox limit",
    ),
    key(
        &["services", "audit", "content"],
        ValueType::Flag,
        "false",
        "true: audit records include arguments, results and messages, redacted",
    ),
    key(
        &["services", "telemetry", "url"],
        ValueType::Text,
        "",
        "OTLP endpoint for traces and metrics; \"env\": from the OTEL_EXPORTER_OTLP_* variables; unset: none",
    ),
    key(
        &["services", "telemetry", "content"],
        ValueType::Flag,
        "false",
        "true: traces include messages, arguments and results, redacted",
    ),
    key(
        &["services", "sessions", "url"],
        ValueType::Text,
        "",
        "address of your organisation's session service, which registers each session and sends its policy; https, or http on \
        this machine; unset: none",
    ),
    key(
        &["services", "sessions", "token"],
        ValueType::Text,
        "",
        "reference to the bearer token for this service: \"env:NAME\", or \"keyring:sessions\" after `aye auth login sessions`; \
        unset: none",
    ),
    key(
        &["services", "sessions", "token_command"],
        ValueType::TextList,
        "",
        "program and arguments that print the bearer token for this service; run without a shell, when the token is needed",
    ),
    key(
        &["services", "sessions", "token_lifetime_seconds"],
        ValueType::Number { min: 1, max: 31_536_000 },
        "",
        "time after which token_command runs again; unset: only when the service rejects the token",
    ),
    key(
        &["services", "sessions", "required"],
        ValueType::Flag,
        "false",
        "true: no session starts while this service cannot be reached",
    ),
    key(
        &["agents", "at_once"],
        ValueType::Number { min: 1, max: 32 },
        "4",
        "maximum number of agents that work at the same time; others wait",
    ),
    key(
        &["agents", "per_response"],
        ValueType::Number { min: 1, max: 100 },
        "16",
        "maximum number of agents that one model response can start",
    ),
    key(&["agents", "steps"], STEPS, "50", "maximum number of steps of an agent whose definition sets none"),
    key(&["agents", "max_steps"], STEPS, "200", "maximum number of steps of an agent, regardless of its definition"),
    key(
        &["agents", "budget_percent"],
        ValueType::Number { min: 1, max: 100 },
        "25",
        "percentage of each budget's remaining amount that an agent may use",
    ),
    key(
        &["agents", "depth"],
        ValueType::Number { min: 0, max: 3 },
        "1",
        "levels of agents: 0: no agents; 1: the session starts agents, which start no others; at most 3",
    ),
    key(
        &["lsp", "enabled"],
        ValueType::Flag,
        "true",
        "false: do not check proposed changes with language servers, which run only in trusted projects, in the sandbox",
    ),
    key(&["lsp", "*", "enabled"], ValueType::Flag, "true", "false: do not use the server for this language"),
    key(
        &["lsp", "*", "command"],
        ValueType::TextList,
        "",
        "program and arguments of the language server (rust, go, python, typescript or c); unset: the usual server, \
        found in PATH",
    ),
    key(
        &["mcp", "defer_over"],
        ValueType::Number { min: 0, max: 100 },
        "10",
        "percentage of the context window beyond which MCP tool definitions are loaded on demand; 0: \
        always on demand",
    ),
    key(&["mcp", "servers", "*", "command"], ValueType::Text, "", "program of the server; set either this or url"),
    key(&["mcp", "servers", "*", "args"], ValueType::TextList, "[]", "arguments of the program"),
    key(
        &["mcp", "servers", "*", "env"],
        ValueType::TextTable,
        "{}",
        "environment variables, in addition to those that commands get; ${VAR} in a value is replaced from the environment",
    ),
    key(&["mcp", "servers", "*", "cwd"], ValueType::Text, "", "working directory of the program; unset: the workspace"),
    key(
        &["mcp", "servers", "*", "network"],
        ValueType::Flag,
        "false",
        "true: the program may access the network; required by servers that `npx` downloads",
    ),
    key(&["mcp", "servers", "*", "url"], ValueType::Text, "", "URL of the server; https, or http on this machine"),
    key(
        &["mcp", "servers", "*", "type"],
        ValueType::Choice(&SERVER_KINDS),
        "\"auto\"",
        "transport: http (streamable), sse (the older event stream); unset: detected",
    ),
    key(
        &["mcp", "servers", "*", "headers"],
        ValueType::TextTable,
        "{}",
        "headers of every request; ${VAR} in a value is replaced from the environment (use this for secrets)",
    ),
    key(&["mcp", "servers", "*", "bearer_token_env"], ValueType::Text, "", "environment variable with the bearer token"),
    key(&["mcp", "servers", "*", "enabled"], ValueType::Flag, "true", "false: disable the server"),
    key(
        &["mcp", "servers", "*", "retry_attempts"],
        ValueType::Number { min: 0, max: 20 },
        "3",
        "maximum number of retries of a failed connection",
    ),
    key(
        &["mcp", "servers", "*", "retry_delay_ms"],
        ValueType::Number { min: 1, max: 60_000 },
        "1000",
        "delay before the first retry; doubled for each further retry",
    ),
    key(
        &["mcp", "servers", "*", "start_timeout_seconds"],
        SECONDS,
        "30",
        "maximum startup time; nothing else waits for the server",
    ),
    key(&["mcp", "servers", "*", "timeout_seconds"], SECONDS, "60", "maximum duration of a tool call"),
    key(
        &["mcp", "servers", "*", "tool_timeouts"],
        ValueType::NumberTable { min: 1, max: MAX_SECONDS },
        "{}",
        "maximum duration of a call, for individual tools: { build = 600 }",
    ),
    key(
        &["mcp", "servers", "*", "oauth", "client_id"],
        ValueType::Text,
        "",
        "client ID for `aye mcp login`, or the https URL of its metadata document; unset: aye registers itself",
    ),
    key(
        &["mcp", "servers", "*", "oauth", "scopes"],
        ValueType::TextList,
        "[]",
        "scopes to request; empty: the scopes that the server requires",
    ),
    key(
        &["mcp", "servers", "*", "oauth", "redirect_port"],
        ValueType::Number { min: 1, max: 65_535 },
        "",
        "port on 127.0.0.1 for the browser redirect; unset: any free port",
    ),
];

impl ConfigKey {
    fn fits(&self, path: &[String]) -> bool {
        self.pattern.len() == path.len() && self.starts_with(path)
    }

    /// Returns whether `path` is the path of this key or of a table that contains it.
    pub(super) fn starts_with(&self, path: &[String]) -> bool {
        self.pattern.len() >= path.len() && self.pattern.iter().zip(path).all(|(want, have)| *want == "*" || want == have)
    }

    pub(super) fn dotted_name(&self) -> String {
        self.pattern.join(".").replace('*', "NAME")
    }
}

pub(super) fn find(path: &[String]) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|key| key.fits(path))
}

fn find_by_parts(path: &[&str]) -> Option<&'static ConfigKey> {
    find(&path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>())
}

/// Returns the default value of a number key, or 0 if it has none.
pub(super) fn default_number(path: &[&str]) -> u64 {
    find_by_parts(path).and_then(|key| key.default.parse().ok()).unwrap_or_default()
}

/// Returns the default value of a flag.
pub(super) fn default_flag(path: &[&str]) -> bool {
    find_by_parts(path).is_some_and(|key| key.default == "true")
}

/// Returns the default value of a key, if it has one.
pub(super) fn default_value(path: &[&str]) -> Option<toml::Value> {
    let default = find_by_parts(path)?.default;
    toml::from_str::<toml::Table>(&format!("value = {default}")).ok()?.remove("value")
}

impl ValueType {
    /// Returns a description of the values that are expected.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::ModelName => "PROVIDER/NAME, for example \"anthropic/claude-sonnet-5\"".to_owned(),
            Self::ModelNames => "an array of PROVIDER/NAME, for example [\"anthropic/claude-sonnet-5\"]".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Number { min, max } => format!("an integer from {min} to {max}"),
            Self::Dollars => "an amount in US dollars, such as 5 or 0.50".to_owned(),
            Self::Price => "US dollars per million tokens, input and output, such as \"3,15\"".to_owned(),
            Self::Size => "a number of bytes, or a string such as \"10MB\"".to_owned(),
            Self::Choice(choices) => {
                format!("one of {}", choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(", "))
            }
            Self::TextList => "an array of strings".to_owned(),
            Self::PortList => "an array of ports, such as [11434, 8080]".to_owned(),
            Self::TextTable => "a table of strings".to_owned(),
            Self::NumberTable { min, max } => format!("a table of integers from {min} to {max}"),
        }
    }
}

/// Returns a suggestion for an unknown key: the most similar key in its table, a key with the same name in another
/// table, or otherwise all keys in its table.
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
        return format!("did you mean `{}`?", key.dotted_name());
    }
    let mut names: Vec<String> = here.iter().map(|name| format!("`{name}`")).collect();
    names.sort_unstable();
    names.dedup();
    format!("use {}", names.join(", "))
}

/// Formats the list of all keys for `aye config keys`.
pub(crate) fn key_list() -> String {
    let entries = KEYS.iter().map(|key| {
        let default = if key.default.is_empty() { "unset" } else { key.default };
        format!("{}\n    {}; default {default}\n    {}\n", key.dotted_name(), key.kind.describe(), key.doc)
    });
    entries.collect::<Vec<_>>().concat()
}

/// Returns the JSON Schema of `config.toml`, for use in editors and validators.
pub(crate) fn json_schema() -> Value {
    let keys: Vec<PathAndKey> = KEYS.iter().map(|key| (key.pattern, key)).collect();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "aye config.toml",
    });
    if let (Some(schema), Value::Object(members)) = (schema.as_object_mut(), table(&keys)) {
        schema.extend(members);
    }
    schema
}

/// Path of a key relative to the current table, and the key itself.
type PathAndKey = (&'static [&'static str], &'static ConfigKey);

/// Returns the schema of a table. `keys` contains the table's keys, each with its path relative to the table.
fn table(keys: &[PathAndKey]) -> Value {
    let mut properties = Map::new();
    let mut others = Value::Bool(false);
    for (path, key) in keys {
        let Some((name, rest)) = path.split_first() else { continue };
        if *name != "*" && properties.contains_key(*name) || *name == "*" && others.is_object() {
            continue;
        }
        let below = |(path, key): &PathAndKey| path.strip_prefix(&[*name]).map(|rest| (rest, *key));
        let schema = if rest.is_empty() { value(key) } else { table(&keys.iter().filter_map(below).collect::<Vec<_>>()) };
        if *name == "*" {
            others = schema;
        } else {
            properties.insert((*name).to_owned(), schema);
        }
    }
    if properties.is_empty() {
        return json!({"type": "object", "additionalProperties": others});
    }
    json!({"type": "object", "properties": properties, "additionalProperties": others})
}

/// Returns the schema for a key's value.
fn value(key: &ConfigKey) -> Value {
    let mut schema = key.kind.schema();
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".to_owned(), json!(key.doc));
        let default = toml::from_str::<Map<String, Value>>(&format!("value = {}", key.default)).ok();
        members.extend(default.and_then(|mut table| table.remove("value")).map(|default| ("default".to_owned(), default)));
    }
    schema
}

impl ValueType {
    /// Returns the JSON Schema for values of this type.
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::ModelName => json!({"type": "string", "pattern": "^[^/]+/."}),
            Self::ModelNames => json!({"type": "array", "items": {"type": "string", "pattern": "^[^/]+/."}}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Number { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            Self::Size => json!({"anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": "^\\s*[0-9]+\\s*([bB]|[kKmMgG]([iI]?[bB])?)?\\s*$"},
            ]}),
            Self::Dollars => json!({"type": "number", "minimum": 0, "maximum": 1e9}),
            Self::Price => json!({"type": "string", "pattern": "^\\s*\\$?[0-9.]+[, ]+\\$?[0-9.]+\\s*$"}),
            Self::Choice(choices) => json!({"enum": choices}),
            Self::TextList => json!({"type": "array", "items": {"type": "string"}}),
            Self::PortList => json!({"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65_535}}),
            Self::TextTable => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Self::NumberTable { min, max } => {
                json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": min, "maximum": max}})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;
    use boon::{Compiler, Schemas};
    use std::path::Path;

    /// Returns whether a file is valid according to the schema, and whether it is valid according to the parser.
    fn is_valid(text: &str) -> (bool, bool) {
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource("aye:///config", json_schema()).unwrap();
        let index = compiler.compile("aye:///config", &mut schemas).unwrap();
        let value: Value = toml::from_str(text).unwrap();
        (schemas.validate(&value, index).is_ok(), file::parse(text, Path::new("config.toml")).is_ok())
    }

    #[test]
    fn the_json_schema_accepts_everything_that_the_parser_accepts() {
        for text in [
            "",
            "[model]\ndefault = \"acme/one\"\neffort = \"low\"\n",
            "[budget]\nsession_cost_usd = 0.5\ntask_cost_usd = 2\n",
            "[tools.text]\nmax_file_size = \"10MB\"\nallowed_extensions = []\n",
            "[tools.text]\nmax_file_size = 4096\n",
            "[llm]\nlocal_ports = [8080]\n",
            "[providers.acme]\napi = \"gemini\"\nbase_url = \"https://example.org\"\nmodels = [\"a\"]\n",
            "[mcp.servers.docs]\ncommand = \"x\"\nenv = { A = \"b\" }\ntool_timeouts = { build = 600 }\n[mcp.servers.docs.oauth]\nredirect_port = 1\n",
            "[profiles.ci]\nmode = \"auto-edit\"\nmax_budget_usd = 2\n",
        ] {
            assert_eq!(is_valid(text), (true, true), "{text}");
        }
        for text in [
            "x = 1\n",
            "[model]\ndefault = \"one\"\n",
            "[model]\ndefault = \"acme/\"\n",
            "[model]\nefort = \"low\"\n",
            "[budget]\nsession_cost_usd = -1\n",
            "[budget]\ntask_steps = 0\n",
            "[budget]\ntask_steps = 1.5\n",
            "[tools.text]\nmax_file_size = \"10XB\"\n",
            "[llm]\nlocal_ports = [0]\n",
            "[providers.acme]\nurl = \"x\"\n",
            "[mcp.servers.docs]\nenv = { A = 1 }\n",
            "[profiles.ci]\nmode = \"yolo\"\n",
            "[approval]\nmode = 1\n",
            "ui = 1\n",
        ] {
            assert_eq!(is_valid(text), (false, false), "{text}");
        }
    }

    #[test]
    fn every_key_has_a_description_and_a_valid_default_in_the_json_schema() {
        let schema = json_schema();
        for key in KEYS {
            let place = key.pattern.iter().fold(&schema, |table, name| match *name {
                "*" => &table["additionalProperties"],
                name => &table["properties"][name],
            });
            assert_eq!(place["description"], key.doc, "{}", key.dotted_name());
            assert_eq!(place.get("default").is_some(), !key.default.is_empty(), "{}", key.dotted_name());
            if !key.default.is_empty() && !key.pattern.contains(&"*") {
                let (name, tables) = key.pattern.split_last().unwrap();
                let text = format!("[{}]\n{name} = {}\n", tables.join("."), key.default);
                assert_eq!(is_valid(&text), (true, true), "{text}");
            }
        }
    }
}
