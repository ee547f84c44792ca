//! Project content that takes effect only with trust. It is listed and hashed within limits, but never executed.

use crate::config::instructions::{InstructionFile, InstructionFiles};
use crate::hooks::{Hook, HookAction, HookFile, HookOrigin, PROJECT_FILES, read_claude_file, read_toml_file, simple_commands};
use crate::protocol::size;
use crate::skills::{Candidate, CandidateContents, Folder, FolderContents, Origin, PROJECT_FOLDERS, SKILL_FILE};
use crate::subagents;
use serde::Deserialize;
use std::collections::HashSet;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Directory that contains a project's tool manifests.
pub(crate) const TOOLS: &str = ".aye/tools";
/// Directory that contains a project's slash commands.
pub(crate) const COMMANDS: &str = ".aye/commands";
/// Maximum size of a text file in bytes.
const TEXT_BYTES: u64 = 1 << 20;
/// Maximum size in bytes of a program. Programs are hashed but their content is not stored.
const PROGRAM_BYTES: u64 = 64 << 20;
/// Maximum number of slash commands, and of each other kind of file.
const MAX_FILES: usize = 100;
/// Maximum number of command folders, and how deeply they may be nested.
const MAX_FOLDERS: usize = 20;
const FOLDER_DEPTH: usize = 3;
/// Maximum number of directory entries to examine.
const MAX_ENTRIES: usize = 10_000;

/// Project file that takes effect only with trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Path, relative to the workspace if inside it.
    pub name: String,
    pub kind: TrustItemKind,
    pub content: TrustContent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustItemKind {
    Policy,
    Config,
    Command,
    Tool,
    /// Program that one of the project's tools runs.
    Program,
    McpServers,
    Hooks,
    /// Program that one of the project's hooks runs.
    HookProgram,
    Instructions,
    Skill,
    /// Skill file other than `SKILL.md`.
    SkillFile,
    /// Agent definition.
    Agent,
    /// Directory entries that exceed a limit.
    Rest,
}

/// Content of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrustContent {
    Text(Vec<u8>),
    /// Hash of a program, or of a text whose content is kept elsewhere.
    Hashed {
        hash: String,
        bytes: u64,
    },
    TooLarge {
        bytes: u64,
    },
    /// Symlink that leads outside the project and is not followed.
    Outside {
        to: PathBuf,
    },
    /// Path that is not a file or cannot be read, for the given reason.
    Closed {
        why: String,
    },
}

impl Item {
    /// Returns a string that identifies the content and changes whenever the content does.
    pub(crate) fn fingerprint(&self) -> String {
        match &self.content {
            TrustContent::Text(bytes) => blake3::hash(bytes).to_hex().to_string(),
            TrustContent::Hashed { hash, .. } => hash.clone(),
            TrustContent::TooLarge { bytes } => format!("{bytes} bytes"),
            TrustContent::Outside { to } => format!("link to {}", to.display()),
            TrustContent::Closed { why } => why.clone(),
        }
    }

    /// Returns the text, or `None` if it was not stored.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match &self.content {
            TrustContent::Text(bytes) => Some(bytes),
            TrustContent::Hashed { .. }
            | TrustContent::TooLarge { .. }
            | TrustContent::Outside { .. }
            | TrustContent::Closed { .. } => None,
        }
    }

    /// Returns whether the item can take effect at all.
    pub(crate) fn is_effective(&self) -> bool {
        matches!(self.content, TrustContent::Text(_) | TrustContent::Hashed { .. })
    }

    /// Returns a short description: the kind of item and, if it is ignored, the reason.
    pub(crate) fn summary(&self) -> String {
        let kind = match self.kind {
            TrustItemKind::Policy => "policy, restrictions only",
            TrustItemKind::Config => "settings",
            TrustItemKind::Command => "command",
            TrustItemKind::Tool => "tool",
            TrustItemKind::Program => "program of a tool",
            TrustItemKind::McpServers => "MCP servers",
            TrustItemKind::Hooks => "hooks, which run on certain events",
            TrustItemKind::HookProgram => "program of a hook",
            TrustItemKind::Instructions => "instructions for the model",
            TrustItemKind::Skill => "skill",
            TrustItemKind::SkillFile => "file of a skill",
            TrustItemKind::Agent => "agent",
            TrustItemKind::Rest => "not inspected, ignored",
        };
        match &self.content {
            TrustContent::Text(bytes) => format!("{kind}, {}", size(bytes.len() as u64)),
            TrustContent::Hashed { bytes, .. } => format!("{kind}, {}", size(*bytes)),
            TrustContent::TooLarge { bytes } => format!("{kind}; too large ({}), ignored", size(*bytes)),
            TrustContent::Outside { to } => format!("{kind}; points outside the project to {}, ignored", to.display()),
            TrustContent::Closed { why } if self.kind == TrustItemKind::Rest => format!("{why}, {kind}"),
            TrustContent::Closed { why } => format!("{kind}; {why}, ignored"),
        }
    }
}

/// Returns a project's policy as it currently is on disk, or `None` if it has none.
pub(crate) fn policy(workspace: &Path) -> Option<Item> {
    item(workspace, ".aye/policy.toml", TrustItemKind::Policy, ContentUse::Text)
}

/// Returns all items that exist, in the order in which the trust prompt lists them.
pub(crate) fn collect(workspace: &Path, instructions: &InstructionFiles, skills: &[FolderContents]) -> Vec<Item> {
    let mut items = Vec::new();
    let one = |name: &str, kind| item(workspace, name, kind, ContentUse::Text);
    items.extend(policy(workspace));
    items.extend(one(".aye/config.toml", TrustItemKind::Config));
    items.extend(one(".mcp.json", TrustItemKind::McpServers));
    for directory in folders(workspace, COMMANDS) {
        several(workspace, &directory, "md", TrustItemKind::Command, &mut items);
    }
    let tools = items.len();
    several(workspace, TOOLS, "toml", TrustItemKind::Tool, &mut items);
    let mut programs: Vec<String> = items[tools..].iter().flat_map(|tool| programs(tool, workspace)).collect();
    programs.extend(
        items.iter().filter(|item| item.kind == TrustItemKind::McpServers).flat_map(|file| server_programs(file, workspace)),
    );
    programs.sort();
    programs.dedup();
    let rest = programs.len().saturating_sub(MAX_FILES);
    items.extend(
        programs.iter().take(MAX_FILES).filter_map(|name| item(workspace, name, TrustItemKind::Program, ContentUse::Hash)),
    );
    if rest > 0 {
        let content = TrustContent::Closed { why: format!("{rest} more") };
        items.push(Item { name: "programs of tools".to_owned(), kind: TrustItemKind::Rest, content });
    }
    hook_items(workspace, &mut items);
    items.extend(instructions.files.iter().map(|file| instruction_item(workspace, file)));
    items.extend(instructions.outside.iter().map(|(path, to)| Item {
        name: relative(workspace, path),
        kind: TrustItemKind::Instructions,
        content: TrustContent::Outside { to: to.clone() },
    }));
    items.extend(instructions.ignored.iter().map(|(name, why)| Item {
        name: name.clone(),
        kind: TrustItemKind::Instructions,
        content: TrustContent::Closed { why: why.clone() },
    }));
    for (folder, contents) in PROJECT_FOLDERS.iter().zip(skills) {
        skill_items(folder, contents, &mut items);
    }
    for (folder, format) in subagents::PROJECT_FOLDERS {
        for directory in folders(workspace, folder) {
            several(workspace, &directory, format.extension(), TrustItemKind::Agent, &mut items);
        }
    }
    items
}

/// Returns the skills in each of a project's skill folders.
pub(crate) fn skills(workspace: &Path) -> Vec<FolderContents> {
    let mut seen = HashSet::new();
    PROJECT_FOLDERS.iter().map(|name| project_folder(workspace, name).contents(&mut seen)).collect()
}

/// Returns a project folder in which skills can be stored.
pub(crate) fn project_folder(workspace: &Path, name: &str) -> Folder {
    Folder {
        path: workspace.join(name),
        shown: name.to_owned(),
        origin: Origin::Project,
        boundary: Some(workspace.to_owned()),
        kept_apart: vec![workspace.to_owned()],
    }
}

fn skill_items(folder: &str, contents: &FolderContents, items: &mut Vec<Item>) {
    let whole = |content| Item { name: folder.to_owned(), kind: TrustItemKind::Skill, content };
    items.extend(contents.problem.iter().map(|why| whole(TrustContent::Closed { why: why.clone() })));
    items.extend(contents.outside.iter().map(|to| whole(TrustContent::Outside { to: to.clone() })));
    contents.candidates.iter().for_each(|candidate| candidate_items(candidate, items));
    if contents.rest > 0 {
        let content = TrustContent::Closed { why: format!("{} more", contents.rest) };
        items.push(Item { name: format!("{folder}/…"), kind: TrustItemKind::Rest, content });
    }
}

/// Adds the files of a skill, starting with `SKILL.md`.
fn candidate_items(candidate: &Candidate, items: &mut Vec<Item>) {
    let skill = |content| Item { name: candidate.file(), kind: TrustItemKind::Skill, content };
    match &candidate.contents {
        CandidateContents::Read { text, files, .. } => {
            items.push(skill(TrustContent::Text(text.clone())));
            let others = files.iter().flatten().filter(|file| file.path != SKILL_FILE);
            items.extend(others.map(|file| Item {
                name: format!("{}/{}", candidate.shown, file.path),
                kind: TrustItemKind::SkillFile,
                content: TrustContent::Hashed { hash: file.hash.clone(), bytes: file.bytes },
            }));
        }
        CandidateContents::Outside { to } => items.push(skill(TrustContent::Outside { to: to.clone() })),
        CandidateContents::Closed { why } => items.push(skill(TrustContent::Closed { why: why.clone() })),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentUse {
    Text,
    Hash,
}

/// Returns the trust item for an instruction file. Its hash covers only the text that the model would receive.
pub(crate) fn instruction_item(workspace: &Path, file: &InstructionFile) -> Item {
    let content = TrustContent::Hashed { hash: file.digest(), bytes: file.text.len() as u64 };
    Item { name: relative(workspace, &file.path), kind: TrustItemKind::Instructions, content }
}

pub(crate) fn relative(workspace: &Path, path: &Path) -> String {
    path.strip_prefix(workspace).unwrap_or(path).to_string_lossy().into_owned()
}

fn item(workspace: &Path, name: &str, kind: TrustItemKind, keep: ContentUse) -> Option<Item> {
    let content = content(workspace, &workspace.join(name), keep)?;
    Some(Item { name: name.to_owned(), kind, content })
}

/// Reads the content of an item. Only regular files inside the project are opened, and the number of bytes read is
/// limited. Returns `None` if the path does not exist.
fn content(workspace: &Path, path: &Path, keep: ContentUse) -> Option<TrustContent> {
    let closed = |why: &str| Some(TrustContent::Closed { why: why.to_owned() });
    match path.symlink_metadata() {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => return None,
        Err(_) => return closed("cannot be read"),
    }
    let Ok(real) = path.canonicalize() else { return closed("dangling symlink") };
    if !real.starts_with(workspace) {
        return Some(TrustContent::Outside { to: real });
    }
    let most = if keep == ContentUse::Text { TEXT_BYTES } else { PROGRAM_BYTES };
    match real.metadata() {
        Ok(metadata) if !metadata.is_file() => return closed("not a file"),
        Ok(metadata) if metadata.len() > most => return Some(TrustContent::TooLarge { bytes: metadata.len() }),
        Ok(_) => {}
        Err(_) => return closed("cannot be read"),
    }
    let read = match keep {
        ContentUse::Text => read_small(&real, most).map(|read| read.map(TrustContent::Text)),
        ContentUse::Hash => hash(&real, most),
    };
    match read {
        Ok(Some(content)) => Some(content),
        Ok(None) => closed("changed while it was read"),
        Err(_) => closed("cannot be read"),
    }
}

/// Reads a regular file. Returns `None` if it is larger than `most` bytes. Fails if the path contains symlinks.
pub(crate) fn read_small(real: &Path, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    crate::sys::path::open_file(real)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Returns the content of a file that was hashed earlier, provided that it still matches the hash, is valid UTF-8, and
/// is no larger than `TEXT_BYTES`.
pub(crate) fn read_if_unchanged(path: &Path, hash: &str) -> Option<Vec<u8>> {
    let bytes = read_small(&path.canonicalize().ok()?, TEXT_BYTES).ok()??;
    let is_same = blake3::hash(&bytes).to_hex().as_str() == hash;
    (is_same && std::str::from_utf8(&bytes).is_ok()).then_some(bytes)
}

fn hash(real: &Path, most: u64) -> std::io::Result<Option<TrustContent>> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(crate::sys::path::open_file(real)?.take(most + 1))?;
    let (bytes, hash) = (hasher.count(), hasher.finalize().to_hex().to_string());
    Ok((bytes <= most).then_some(TrustContent::Hashed { hash, bytes }))
}

/// Returns a directory and the folders below it, within limits. Folders outside the project are not entered.
fn folders(workspace: &Path, top: &str) -> Vec<String> {
    let mut found = vec![top.to_owned()];
    let mut at = 0;
    while let Some(directory) = found.get(at).cloned() {
        at += 1;
        let depth = directory.matches('/').count() - top.matches('/').count();
        let inside = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(workspace) && real.is_dir());
        let path = workspace.join(&directory);
        if depth >= FOLDER_DEPTH || !inside(&path) {
            continue;
        }
        let Ok(entries) = crate::sys::path::entries(&path) else { continue };
        // A symlink to a folder could form a cycle.
        let is_folder = |name: &String| path.join(name).symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let mut names: Vec<String> = entries
            .take(MAX_ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().to_str().map(str::to_owned))
            .filter(is_folder)
            .collect();
        names.sort();
        found.extend(names.into_iter().map(|name| format!("{directory}/{name}")));
        found.truncate(MAX_FOLDERS + 1);
    }
    found
}

/// Adds a directory's files with this extension, sorted by name.
fn several(workspace: &Path, directory: &str, ending: &str, kind: TrustItemKind, items: &mut Vec<Item>) {
    let path = workspace.join(directory);
    let closed = |why: &str| Item { name: directory.to_owned(), kind, content: TrustContent::Closed { why: why.to_owned() } };
    let real = match (path.symlink_metadata(), path.canonicalize()) {
        (Ok(_), Ok(real)) => real,
        (Ok(_), Err(_)) => return items.push(closed("cannot be read")),
        (Err(_), _) => return,
    };
    if !real.starts_with(workspace) {
        return items.push(Item { name: directory.to_owned(), kind, content: TrustContent::Outside { to: real } });
    }
    if !real.is_dir() {
        return items.push(closed("not a directory"));
    }
    let Ok(entries) = crate::sys::path::entries(&real) else { return items.push(closed("cannot be read")) };
    let mut names: Vec<String> = entries
        .take(MAX_ENTRIES)
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == ending))
        .collect();
    names.sort();
    let rest = names.len().saturating_sub(MAX_FILES);
    let found = names.iter().take(MAX_FILES);
    items.extend(found.filter_map(|name| item(workspace, &format!("{directory}/{name}"), kind, ContentUse::Text)));
    if rest > 0 {
        let content = TrustContent::Closed { why: format!("{rest} more") };
        items.push(Item { name: format!("{directory}/…"), kind: TrustItemKind::Rest, content });
    }
}

/// Returns the project files that a tool manifest refers to by path: programs, scripts and schemas. Returns an empty
/// list if the manifest is invalid.
fn programs(tool: &Item, workspace: &Path) -> Vec<String> {
    #[derive(Deserialize)]
    struct NamedPrograms {
        #[serde(default)]
        command: Vec<String>,
        input_schema_file: Option<String>,
        output_schema_file: Option<String>,
    }
    let TrustContent::Text(bytes) = &tool.content else { return Vec::new() };
    let named = std::str::from_utf8(bytes).ok().and_then(|text| toml::from_str::<NamedPrograms>(text).ok());
    let Some(named) = named else { return Vec::new() };
    let schemas = named.input_schema_file.into_iter().chain(named.output_schema_file).map(|name| format!("./{name}"));
    // A script after its interpreter is executed too. Its path is relative to the manifest or to the root.
    let below = |word: String| [format!("{TOOLS}/{word}"), word];
    let plain = |word: &&String| !word.contains('/') && workspace.join(word).is_file();
    let mut found: Vec<String> = named.command.iter().skip(1).filter(plain).cloned().collect();
    found.extend(named.command.into_iter().chain(schemas).flat_map(below).filter_map(|word| inside(&word)));
    found
}

/// Adds the hook files, and the project's programs that their hooks run.
fn hook_items(workspace: &Path, items: &mut Vec<Item>) {
    let files: Vec<Item> = PROJECT_FILES.iter().filter_map(|name| hook_file(workspace, name)).collect();
    let texts = files.iter().filter_map(|file| Some((file.name.as_str(), file.text()?)));
    let mut programs: Vec<String> = texts
        .flat_map(|(name, text)| read_project_hooks(text, name).hooks)
        .flat_map(|hook| hook_programs(&hook, workspace))
        .collect();
    items.extend(files);
    programs.sort();
    programs.dedup();
    programs.retain(|name| !items.iter().any(|item| item.name == *name));
    let rest = programs.len().saturating_sub(MAX_FILES);
    items.extend(
        programs.iter().take(MAX_FILES).filter_map(|name| item(workspace, name, TrustItemKind::HookProgram, ContentUse::Hash)),
    );
    if rest > 0 {
        let content = TrustContent::Closed { why: format!("{rest} more") };
        items.push(Item { name: "programs of hooks".to_owned(), kind: TrustItemKind::Rest, content });
    }
}

/// Returns a hook file as a trust item. If the file contains another agent's settings, only the keys that concern hooks
/// are included, so changing other keys does not affect trust.
fn hook_file(workspace: &Path, name: &str) -> Option<Item> {
    let item = item(workspace, name, TrustItemKind::Hooks, ContentUse::Text)?;
    let TrustContent::Text(bytes) = &item.content else { return Some(item) };
    if is_toml(name) {
        return Some(item);
    }
    let Ok(serde_json::Value::Object(mut settings)) = serde_json::from_slice(bytes) else { return Some(item) };
    settings.retain(|key, _| matches!(key.as_str(), "hooks" | "disableAllHooks"));
    let has_hooks = settings.get("hooks").is_some_and(|hooks| hooks.as_object().is_none_or(|hooks| !hooks.is_empty()));
    let text = has_hooks.then(|| serde_json::to_vec_pretty(&settings).ok()).flatten()?;
    Some(Item { content: TrustContent::Text(text), ..item })
}

fn is_toml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// Returns the hooks defined in a project file.
pub(crate) fn read_project_hooks(text: &[u8], name: &str) -> HookFile {
    if is_toml(name) {
        read_toml_file(text, name, HookOrigin::Project)
    } else {
        read_claude_file(text, name, HookOrigin::Project)
    }
}

/// Returns the project files that a hook executes.
pub(crate) fn hook_programs(hook: &Hook, workspace: &Path) -> Vec<String> {
    let HookAction::Command { line, .. } = &hook.action else { return Vec::new() };
    let mut found: Vec<String> = simple_commands(line).iter().flat_map(|words| program_files(words, None, workspace)).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the project files that the project's MCP servers execute.
fn server_programs(file: &Item, workspace: &Path) -> Vec<String> {
    let document = file.text().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok());
    let servers = document.as_ref().and_then(|document| document.get("mcpServers")).and_then(serde_json::Value::as_object);
    let words = |server: &serde_json::Value| {
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let args = server.get("args").and_then(serde_json::Value::as_array).into_iter().flatten().filter_map(text);
        let words: Vec<String> = server.get("command").and_then(text).into_iter().chain(args).collect();
        program_files(&words, server.get("cwd").and_then(|cwd| cwd.as_str()), workspace)
    };
    servers.into_iter().flat_map(|servers| servers.values().flat_map(words)).collect()
}

/// File extensions of scripts and other executable code.
const SCRIPTS: &[&str] = &[
    "bash", "bat", "cjs", "class", "clj", "cmd", "cts", "exe", "exs", "fish", "go", "jar", "jl", "js", "jsx", "ksh", "kts",
    "lua", "mjs", "mts", "php", "phar", "pl", "ps1", "py", "pyc", "pyz", "r", "rb", "sh", "so", "swift", "tcl", "ts", "tsx",
    "wasm", "zsh",
];
/// Programs that execute the file given as their first non-option argument.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "dash", "deno", "elixir", "fish", "java", "julia", "ksh", "lua", "node", "nodejs", "perl", "php", "pwsh",
    "Rscript", "ruby", "sh", "ts-node", "tsx", "zsh",
];

/// Returns the project files that a command line executes: its program, and any scripts among its arguments. Data files
/// such as databases and logs are not included, because they change with every call.
pub(crate) fn program_files(words: &[String], directory: Option<&str>, workspace: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let interpreter = words.first().is_some_and(|program| {
        let name = program.rsplit('/').next().unwrap_or(program);
        INTERPRETERS.contains(&name) || name.starts_with("python")
    });
    let mut is_script = interpreter;
    for (at, word) in words.iter().enumerate() {
        // A first word without a slash is resolved through PATH.
        if at == 0 && !word.contains('/') {
            continue;
        }
        let is_option = word.starts_with('-');
        let runs = at == 0 || (is_script && !is_option);
        is_script &= at == 0 || is_option;
        let is_run = |name: &String| {
            let path = workspace.join(name);
            path.is_file() && (runs || is_program(&path))
        };
        // An option such as `--require=./hook.js` can also pass a script.
        let value = word.split_once('=').filter(|_| is_option).map(|(_, value)| value.to_owned());
        for word in std::iter::once(word.clone()).chain(value) {
            let below = directory.filter(|directory| Path::new(directory).is_relative());
            let places = [below.map(|directory| format!("{directory}/{word}")), Some(word.clone())];
            let absolute = Path::new(&word).strip_prefix(workspace).ok().and_then(Path::to_str).map(str::to_owned);
            let dotted = |place: String| inside(&format!("./{}", place.strip_prefix("./").unwrap_or(&place)));
            found.extend(places.into_iter().flatten().filter_map(dotted).chain(absolute).filter(is_run));
        }
    }
    found.dedup();
    found
}

/// Returns whether a file is executable, judging by its extension, its mode, or its first bytes.
fn is_program(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    if ending.is_some_and(|ending| SCRIPTS.contains(&ending.as_str())) {
        return true;
    }
    #[cfg(unix)]
    if path.metadata().is_ok_and(|metadata| std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0) {
        return true;
    }
    let mut start = [0; 2];
    let opened = path.canonicalize().and_then(|real| crate::sys::path::open_file(&real));
    opened.is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && &start == b"#!")
}

/// Returns a path inside the project in normalized form, such as `run.sh` for `./run.sh`. Returns `None` for any other
/// path.
fn inside(word: &str) -> Option<String> {
    let path = Path::new(word);
    let mut components = path.components().peekable();
    let dotted = components.next_if_eq(&Component::CurDir).is_some();
    let names: Option<Vec<&str>> = components
        .map(|component| match component {
            Component::Normal(name) => name.to_str(),
            Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect();
    let names = names.filter(|names| !names.is_empty() && (dotted || names.len() > 1))?;
    Some(names.join("/"))
}
