//! Generates `docs/PROTOCOL.md` from the message types. `UPDATE=1 cargo test --lib serve::tests::page` updates the
//! file.

use crate::serve::FaultCode;
use std::fmt::Write;

const METHODS: &str = include_str!("../methods.rs");
const EVENTS: &str = include_str!("../../protocol/event.rs");
const HEAD: &str = include_str!("page_head.md");
const TRANSCRIPT: &str = include_str!("transcript.txt");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/PROTOCOL.md");

/// Source files of the types used in messages, with the names of these types.
const TYPES: &[(&str, &[&str])] = &[
    (include_str!("../../protocol/state.rs"), &["SessionStatus", "TaskStatus", "TaskState"]),
    (include_str!("../../protocol/approval.rs"), &["Approval", "Details", "CommandLine", "Part", "Risk", "VerdictKind"]),
    (
        include_str!("../../protocol/tool.rs"),
        &["Proposal", "RunsCode", "RunsWhen", "ToolStatus", "ToolError", "ErrorCode", "Redaction"],
    ),
    (include_str!("../../protocol/command_output.rs"), &["CommandEnd"]),
    (include_str!("../../protocol/diagnostics.rs"), &["FileDiagnostics", "Diagnostic"]),
    (include_str!("../../protocol/failure.rs"), &["Failure", "Remedy", "FailureKind"]),
    (EVENTS, &["FailedRequest", "NoticeKind"]),
    (include_str!("../../protocol/budget.rs"), &["BudgetScope", "BudgetUnit"]),
    (include_str!("../../protocol/usage.rs"), &["Usage"]),
    (include_str!("../../protocol/agent_event.rs"), &["AgentEvent", "AgentState"]),
    (include_str!("../../protocol/effects_progress.rs"), &["EffectsProgress", "EffectsStage"]),
    (include_str!("../../protocol/mode.rs"), &["Mode"]),
    (include_str!("../../protocol/message.rs"), &["StopReason"]),
    (include_str!("../../protocol/layer.rs"), &["PolicyLayer"]),
    (
        include_str!("../../protocol/server.rs"),
        &[
            "ServerStatus",
            "ServerState",
            "Elicitation",
            "ElicitationKind",
            "FormField",
            "FieldKind",
            "QuestionOption",
            "ElicitationOutcome",
        ],
    ),
    (include_str!("../../protocol/planned_step.rs"), &["PlannedStep", "StepStatus"]),
    (include_str!("../../protocol/memory.rs"), &["MemoryProposal", "MemoryTarget", "MemorySource", "MemoryQuote"]),
    (include_str!("../../protocol/goal.rs"), &["GoalState", "Goal", "GoalStatus", "GoalReason"]),
];

/// Methods in the order in which the page lists them, with their parameters and results.
const PAIRS: &[(&str, Option<&str>, &str)] = &[
    ("CreateSession", Some("CreateSession"), "SessionReady"),
    ("StartTask", Some("StartTask"), "TaskBegun"),
    ("CancelTask", Some("CancelTask"), "Cancelling"),
    ("ResumeSession", Some("ResumeSession"), "SessionResumed"),
    ("GetSessionState", None, "SessionStateTold"),
    ("GetPatchPreview", Some("GetPatchPreview"), "PatchPreview"),
    ("ApproveAction", Some("ApproveAction"), "ActionDecided"),
    ("AnswerQuestion", Some("AnswerQuestion"), "QuestionAnswered"),
    ("StopAgent", Some("StopAgent"), "StoppingAgent"),
    ("DecideGoal", Some("DecideGoal"), "GoalDecided"),
    ("ListMemory", None, "MemoryListed"),
    ("DecideMemory", Some("DecideMemory"), "MemoryListed"),
    ("Shutdown", Some("Shutdown"), "ShutdownResult"),
];
/// Methods without parameters, with their descriptions.
const WITHOUT_PARAMETERS: &[(&str, &str)] = &[
    ("GetSessionState", "Returns the state of the session and its task."),
    (
        "ListMemory",
        "Returns the proposals of the memory inbox: instructions that aye suggests for the instruction files. Nothing changes \
         until the user decides.",
    ),
];
/// Types used in parameters and results that are documented in a table of their own.
const PARTS: &[&str] = &[
    "ClientInfo",
    "TaskOptions",
    "TaskGoal",
    "GoalDecision",
    "MemoryDecision",
    "ActionDecision",
    "Interrupted",
    "Patch",
    "PatchStatus",
];

/// Events that are sent only at the request of a user interface. Clients of this host never receive them.
const OF_SCREENS: &[&str] = &[
    "ArtifactsListed",
    "ArtifactRead",
    "ProposedShown",
    "RewindPointsListed",
    "RewindPlanned",
    "Rewound",
    "HistoryLoaded",
    "LookedUp",
    "HistorySummed",
    "ModelsListed",
    "ContextShown",
    "ListShown",
    "RuleTold",
    "DraftRestored",
    "OwnCommandStarted",
    "OwnCommandEnded",
];

/// Field of a type, or one of its variants.
struct Member {
    name: String,
    of: String,
    doc: String,
    /// Whether the field may be absent.
    optional: bool,
    /// Whether the fields of this field's type are inlined.
    flat: bool,
}

/// Definition of a struct or enum in the source.
struct Definition {
    doc: String,
    is_enum: bool,
    attributes: String,
    body: String,
}

fn definition(source: &str, name: &str) -> Definition {
    let lines: Vec<&str> = source.lines().collect();
    let heads = [format!("struct {name} {{"), format!("enum {name} {{")];
    let Some(at) = lines.iter().position(|line| heads.iter().any(|head| *head == without_visibility(line))) else {
        panic!("no type `{name}`")
    };
    let first =
        lines[..at].iter().rposition(|line| !(line.starts_with("///") || line.starts_with("#["))).map_or(0, |line| line + 1);
    let of = |start: &str| lines[first..at].iter().filter(|line| line.starts_with(start)).copied().collect::<Vec<_>>();
    let doc = of("///").iter().map(|line| line.trim_start_matches('/').trim()).collect::<Vec<_>>().join(" ");
    let end = at + lines[at..].iter().position(|line| *line == "}").unwrap();
    Definition {
        doc,
        is_enum: without_visibility(lines[at]).starts_with("enum"),
        attributes: of("#[").join("\n"),
        body: lines[at + 1..end].join("\n"),
    }
}

fn without_visibility(line: &str) -> &str {
    ["pub(crate) ", "pub "].iter().find_map(|visibility| line.strip_prefix(visibility)).unwrap_or(line)
}

/// Parses the fields in the body of a type, with their comments and attributes.
fn members(body: &str, indent: usize) -> Vec<Member> {
    let mut found = Vec::new();
    let (mut doc, mut attributes) = (Vec::new(), String::new());
    for line in body.lines() {
        let Some(text) = line.get(indent..).filter(|text| !text.starts_with(' ') && !text.is_empty()) else { continue };
        if let Some(words) = text.strip_prefix("///") {
            doc.push(words.trim().to_owned());
        } else if text.starts_with("#[") {
            attributes.push_str(text);
        } else if attributes.contains("serde(skip)") {
            doc.clear();
            attributes.clear();
        } else if let Some((name, of)) = without_visibility(text).trim_end_matches(',').split_once(": ") {
            let inner = of.strip_prefix("Option<").and_then(|of| of.strip_suffix('>'));
            found.push(Member {
                name: camel(name),
                optional: inner.is_some() || attributes.contains("skip_serializing_if") || attributes.contains("serde(default"),
                flat: attributes.contains("flatten"),
                of: inner.unwrap_or(of).to_owned(),
                doc: std::mem::take(&mut doc).join(" "),
            });
            attributes.clear();
        } else {
            doc.clear();
            attributes.clear();
        }
    }
    found
}

/// Returns the value of `key = "…"` in the attributes of a type, if it is set.
fn said<'a>(definition: &'a Definition, key: &str) -> Option<&'a str> {
    definition.attributes.split(&format!("{key} = \"")).nth(1)?.split('"').next()
}

/// Describes an enum whose variants have fields. A tag says which variant is present.
fn variants(page: &mut String, definition: &Definition, tag: &str) {
    writeln!(page, "`{tag}` selects the variant, and with it the other members:\n").unwrap();
    page.push_str("| variant | member | type | description |\n|---|---|---|---|\n");
    for (name, doc, rows) in variants_of(&definition.body) {
        writeln!(page, "| `{name}` | | | {} |", doc.replace('|', "\\|")).unwrap();
        for Member { name, of, doc, optional, .. } in rows {
            let may = if optional { " (optional)" } else { "" };
            writeln!(page, "| | `{name}` | {}{may} | {} |", json_type(&of), doc.replace('|', "\\|")).unwrap();
        }
    }
    page.push('\n');
}

/// Returns the serialized name and the comment of each variant of an enum without fields.
fn words(definition: &Definition) -> Vec<(String, String)> {
    let (mut found, mut doc, mut renamed) = (Vec::new(), Vec::new(), None);
    for line in definition.body.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            doc.push(words.trim().to_owned());
        } else if let Some(name) = line.strip_prefix("#[serde(rename = \"") {
            renamed = name.split('"').next().map(str::to_owned);
        } else if let Some(name) = line.strip_suffix(',').filter(|name| name.chars().all(char::is_alphanumeric)) {
            let case = said(definition, "rename_all");
            let snake = snake(name);
            let written = match case {
                Some("SCREAMING_SNAKE_CASE") => snake.to_uppercase(),
                Some("kebab-case") => snake.replace('_', "-"),
                Some("lowercase") => name.to_lowercase(),
                _ => snake,
            };
            found.push((renamed.take().unwrap_or(written), std::mem::take(&mut doc).join(" ")));
        }
    }
    found
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| done + &part[..1].to_uppercase() + &part[1..])
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// Returns the JSON type that corresponds to a Rust type.
fn json_type(of: &str) -> String {
    if let Some(inner) = of.strip_prefix("Vec<").and_then(|of| of.strip_suffix('>')) {
        return format!("array of {}", json_type(inner));
    }
    if let Some((one, other)) = of.strip_prefix('(').and_then(|of| of.strip_suffix(')')).and_then(|of| of.split_once(", ")) {
        return format!("pair of {} and {}", json_type(one), json_type(other));
    }
    if let Some(inner) = of.strip_prefix("Box<").and_then(|of| of.strip_suffix('>')) {
        return json_type(inner);
    }
    match of {
        "String" | "PathBuf" | "&'static str" | "FileDiffs" => "string".to_owned(),
        "u16" | "u32" | "u64" | "usize" | "i64" => "number".to_owned(),
        "f64" => "number".to_owned(),
        "bool" => "boolean".to_owned(),
        "Value" => "any value".to_owned(),
        "jiff::Timestamp" => "time (RFC 3339)".to_owned(),
        "CallArguments" => "object".to_owned(),
        id if id.ends_with("Id") => "string".to_owned(),
        other => {
            let known = TYPES.iter().any(|(_, names)| names.contains(&other)) || PARTS.contains(&other);
            if known { format!("[{other}](#{})", other.to_lowercase()) } else { "object".to_owned() }
        }
    }
}

/// Adds a table with one row for each field. Flattened fields are inlined.
fn table(page: &mut String, rows: Vec<Member>) {
    if rows.is_empty() {
        return page.push_str("No members.\n\n");
    }
    page.push_str("| member | type | description |\n|---|---|---|\n");
    for Member { name, of, doc, optional, flat } in rows {
        let kind = json_type(&of);
        let (name, kind) = if flat { ("…".to_owned(), format!("the members of {kind}")) } else { (format!("`{name}`"), kind) };
        let may = if optional && !flat { " (optional)" } else { "" };
        writeln!(page, "| {name} | {kind}{may} | {} |", doc.replace('|', "\\|")).unwrap();
    }
    page.push('\n');
}

fn describe(page: &mut String, source: &str, name: &str) {
    let definition = definition(source, name);
    writeln!(page, "### {name}\n").unwrap();
    if !definition.doc.is_empty() {
        writeln!(page, "{}\n", definition.doc).unwrap();
    }
    if let Some(tag) = said(&definition, "tag").filter(|_| definition.is_enum) {
        variants(page, &definition, tag);
    } else if definition.is_enum {
        for (word, doc) in words(&definition) {
            writeln!(page, "* `{word}`{}{doc}", if doc.is_empty() { "" } else { ": " }).unwrap();
        }
        page.push('\n');
    } else {
        table(page, members(&definition.body, 4));
    }
}

/// Returns the variants of `EventKind` that clients can receive, each with its name, comment and fields.
fn events() -> Vec<(String, String, Vec<Member>)> {
    let mut found = variants_of(&definition(EVENTS, "EventKind").body);
    found.retain(|(name, ..)| !OF_SCREENS.iter().any(|one| snake(one) == *name));
    found
}

/// Returns the name, comment and fields of each variant of an enum.
fn variants_of(body: &str) -> Vec<(String, String, Vec<Member>)> {
    let mut found = Vec::new();
    let (mut doc, mut lines) = (Vec::new(), body.lines().peekable());
    while let Some(line) = lines.next() {
        let text = line.trim();
        if let Some(words) = text.strip_prefix("///") {
            doc.push(words.trim().to_owned());
            continue;
        }
        let name: String = text.chars().take_while(|letter| letter.is_alphanumeric()).collect();
        let mut rows = Vec::new();
        if let Some(of) = text.strip_prefix(&format!("{name}(")).and_then(|rest| rest.strip_suffix("),")) {
            rows.push(Member { name: String::new(), of: of.to_owned(), doc: String::new(), optional: false, flat: true });
        } else if text.ends_with('{') {
            let inner: Vec<&str> = lines.by_ref().take_while(|line| *line != "    },").collect();
            rows = members(&inner.join("\n"), 8);
        }
        let doc = std::mem::take(&mut doc).join(" ");
        if !name.is_empty() {
            found.push((snake(&name), doc, rows));
        }
    }
    found
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("## Methods\n\n");
    for (method, params, result) in PAIRS {
        writeln!(page, "### `{method}`\n").unwrap();
        if let Some(params) = params {
            let params = definition(METHODS, params);
            writeln!(page, "{}\n\nParameters:\n", params.doc).unwrap();
            table(&mut page, members(&params.body, 4));
        } else {
            let does = WITHOUT_PARAMETERS.iter().find(|(name, _)| name == method).unwrap().1;
            writeln!(page, "{does} No parameters.\n").unwrap();
        }
        let result = definition(METHODS, result);
        writeln!(page, "{}\n", result.doc).unwrap();
        let rows = members(&result.body, 4);
        let rows =
            rows.into_iter().flat_map(|row| if row.flat { members(&definition(METHODS, &row.of).body, 4) } else { vec![row] });
        table(&mut page, rows.collect());
    }
    page.push_str("## Errors\n\n| code | meaning |\n|---|---|\n");
    for code in FaultCode::ALL {
        writeln!(page, "| {} | {} |", code.number(), code.meaning()).unwrap();
    }
    page.push_str(
        "\n## Events\n\nThis section lists the `payload` of each `eventType`. Later versions may add events and members; ignore those that you do not know.\n\n",
    );
    for (name, doc, rows) in events() {
        writeln!(page, "### `{name}`\n").unwrap();
        if !doc.is_empty() {
            writeln!(page, "{doc}\n").unwrap();
        }
        table(&mut page, rows);
    }
    page.push_str(
        "### `session_cancelled`\n\nSent instead of `session_completed`, with the same members, if ending the session cancelled a task.\n\n",
    );
    page.push_str(
        "### `session_failed`\n\nSent instead of `session_completed`, with the same members and `reason` (string), if the end of the session cannot be saved.\n\n",
    );
    page.push_str("## Types\n\n");
    for name in PARTS {
        describe(&mut page, METHODS, name);
    }
    for (source, names) in TYPES {
        names.iter().for_each(|name| describe(&mut page, source, name));
    }
    page.push_str("## Example session\n\n");
    page.push_str("Lines with `→` are sent by the client, and lines with `←` by the host. `…` replaces a value that differs each time. Some members and events are left out.\n");
    page.push_str("A test sends these lines and checks the responses.\n\n```jsonrpc\n");
    page.push_str(TRANSCRIPT);
    page.push_str("```\n");
    page
}

#[test]
fn the_protocol_page_is_generated_from_its_types() {
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let stands = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(stands == page, "docs/PROTOCOL.md is out of date; run UPDATE=1 cargo test --lib serve::tests::page");
}
