//! Effects of programs that use the user's account to act on a service or a database.

use super::{Arg, CommandEffect, join_names, non_option_words, quoted};
use crate::protocol::Risk;

/// A program that acts on a service.
struct ServiceProgram {
    program: &'static str,
    /// Service name, as used after "acts on" in a sentence.
    name: &'static str,
    /// Position of the subcommand that determines whether the command only reads. Matching words in other positions are
    /// ignored, because a word that follows an option may be its value.
    at: usize,
    reading: &'static [&'static str],
    /// Subcommands that affect only files on this machine.
    local: &'static [&'static str],
}

const fn service(
    program: &'static str,
    name: &'static str,
    at: usize,
    reading: &'static [&'static str],
    local: &'static [&'static str],
) -> ServiceProgram {
    ServiceProgram { program, name, at, reading, local }
}

const OF_CONTAINERS: &[&str] = &["ps", "images", "logs", "inspect", "version", "info", "top", "stats", "diff"];
const OF_PLANS: &[&str] = &["plan", "show", "output", "graph", "providers"];
const OF_FILES: &[&str] = &["fmt", "validate", "version", "-version", "--version", "-help", "--help"];

const SERVICES: &[ServiceProgram] = &[
    service(
        "kubectl",
        "your Kubernetes cluster",
        0,
        &["get", "describe", "logs", "top", "explain", "version", "api-resources", "diff"],
        &[],
    ),
    service(
        "helm",
        "your Kubernetes cluster",
        0,
        &["list", "get", "status", "history", "search"],
        &["template", "lint", "create"],
    ),
    service("aws", "your AWS account", 1, &["ls", "help"], &[]),
    service("gcloud", "your Google Cloud account", 2, &["list", "describe"], &[]),
    service("gsutil", "your Google Cloud storage", 0, &["ls", "cat", "stat", "du", "help"], &["version"]),
    service("s3cmd", "your S3 storage", 0, &["ls", "la", "du", "info"], &[]),
    service("az", "your Azure account", 1, &["list", "show"], &[]),
    service("gh", "GitHub with your account", 1, &["list", "view", "status", "diff", "checks"], &[]),
    service("glab", "GitLab with your account", 1, &["list", "view", "status", "diff"], &[]),
    service("docker", "containers, which can change this machine", 0, OF_CONTAINERS, &[]),
    service("podman", "containers", 0, OF_CONTAINERS, &[]),
    service("terraform", "your infrastructure", 0, OF_PLANS, OF_FILES),
    service("tofu", "your infrastructure", 0, OF_PLANS, OF_FILES),
    service("pulumi", "your infrastructure", 0, &["preview", "about", "whoami", "logs"], &["version"]),
    service("cdk", "your AWS account", 0, &["diff", "list", "ls"], &["synth", "init"]),
    service("sam", "your AWS account", 0, &["list", "logs"], &["build", "validate", "init"]),
    service("serverless", "your cloud account", 0, &["info", "logs"], &[]),
    service("ansible-playbook", "other machines", 0, &["--check"], &["--syntax-check", "--version"]),
    service("ansible", "other machines", 0, &[], &["--version"]),
    service("heroku", "your Heroku account", 0, &["apps", "logs", "ps", "status"], &[]),
    service("flyctl", "your Fly account", 0, &["status", "logs", "version"], &[]),
    service("fly", "your Fly account", 0, &["status", "logs", "version"], &[]),
    service("vercel", "your Vercel account", 0, &["list", "ls", "inspect", "logs", "whoami"], &["dev", "build"]),
    service("netlify", "your Netlify account", 0, &["status"], &["dev", "build"]),
    service("wrangler", "your Cloudflare account", 0, &["tail", "whoami"], &["dev", "types"]),
    service("firebase", "your Firebase project", 0, &["projects:list"], &["emulators:start", "serve"]),
];
/// Maximum number of subcommand words shown in a sentence.
const MAX_WORDS: usize = 3;

/// Database clients, as (program, options that take a statement, options that take another value).
const CLIENTS: &[(&str, &[&str], &[&str])] = &[
    (
        "psql",
        &["-c", "--command"],
        &["-d", "--dbname", "-h", "--host", "-p", "--port", "-U", "--username", "-o", "-v", "-F", "-P"],
    ),
    ("mysql", &["-e", "--execute"], &["-h", "--host", "-P", "--port", "-u", "--user", "-D", "--database"]),
    ("mariadb", &["-e", "--execute"], &["-h", "--host", "-P", "--port", "-u", "--user", "-D", "--database"]),
    ("mongosh", &["--eval"], &["--host", "--port", "-u", "--username", "-p", "--password"]),
    ("mongo", &["--eval"], &["--host", "--port", "-u", "--username", "-p", "--password"]),
];
/// First words of read-only statements.
const QUERIES: &[&str] =
    &["select", "show", "explain", "describe", "desc", "table", "values", "\\d", "\\dt", "\\l", "\\conninfo"];
/// Keywords of statements that delete data.
const DROPS: &[&str] = &["drop", "delete", "truncate"];

/// Returns the effect of a program that acts on a service or a database.
pub(crate) fn effect(program: &str, words: &[Arg]) -> Option<CommandEffect> {
    database_effect(program, words).or_else(|| service_effect(program, words))
}

fn service_effect(program: &str, words: &[Arg]) -> Option<CommandEffect> {
    let service = SERVICES.iter().find(|service| service.program == program)?;
    let before = words.iter().take(service.at).all(|word| !word.text.starts_with('-'));
    let is = |list: &[&str]| before && words.get(service.at).is_some_and(|word| list.contains(&word.text.as_str()));
    if is(service.local) {
        return None;
    }
    if is(service.reading) {
        return Some(CommandEffect::new(
            Risk::Medium,
            format!("reads from {}", service.name.split(',').next().unwrap_or_default()),
        ));
    }
    if matches!(program, "docker" | "podman") && words.first().is_some_and(|word| word.text == "push") {
        let image = non_option_words(&words[1..], &[]).first().map_or_else(|| "an image".to_owned(), |word| quoted(&word.text));
        return Some(CommandEffect::new(Risk::High, format!("publishes {image}")));
    }
    let is_word = |word: &&Arg| word.is_known() && !word.text.starts_with('-');
    let named: Vec<&str> = words.iter().take_while(is_word).take(MAX_WORDS).map(|word| word.text.as_str()).collect();
    let sentence = match named.as_slice() {
        [] => format!("acts on {}", service.name),
        named => format!("acts on {}: {}", service.name, quoted(&named.join(" "))),
    };
    Some(CommandEffect::new(Risk::High, sentence))
}

fn database_effect(program: &str, words: &[Arg]) -> Option<CommandEffect> {
    if let "dropdb" | "dropuser" = program {
        let name =
            join_names(&non_option_words(words, &["-h", "-p", "-U"]).iter().map(|word| word.text.clone()).collect::<Vec<_>>());
        let kind = if program == "dropdb" { "database" } else { "user" };
        let object = name.map_or_else(|| format!("a database {kind}"), |name| format!("the database {kind} {name}"));
        return Some(CommandEffect::new(Risk::High, format!("deletes {}", object.replace("database database", "database"))));
    }
    if program == "redis-cli" {
        let is_flush = words.iter().any(|word| matches!(word.text.to_ascii_lowercase().as_str(), "flushall" | "flushdb"));
        return Some(if is_flush {
            CommandEffect::new(Risk::High, "deletes all data of a Redis database")
        } else {
            CommandEffect::new(Risk::Medium, "runs commands in a Redis database")
        });
    }
    let (_, statements, valued) = CLIENTS.iter().find(|(name, ..)| *name == program)?;
    let texts = statement_texts(words, statements);
    let with_value: Vec<&str> = statements.iter().chain(*valued).copied().collect();
    let option = |names: &[&str]| {
        let at = words.iter().position(|word| names.contains(&word.text.as_str()))?;
        words.get(at + 1).map(|word| quoted(&word.text))
    };
    let named = option(&["-d", "--dbname", "-D", "--database"])
        .or_else(|| non_option_words(words, &with_value).first().map(|word| quoted(&word.text)));
    let database = named.map_or_else(|| "a database".to_owned(), |name| format!("the database {name}"));
    let first_word = |text: &str| text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let parts: Vec<&str> = texts.iter().flat_map(|text| text.split(';')).map(str::trim).filter(|text| !text.is_empty()).collect();
    let drops = |text: &&str| {
        text.split(|letter: char| !letter.is_alphanumeric()).any(|word| DROPS.contains(&word.to_ascii_lowercase().as_str()))
    };
    let lists = words.iter().any(|word| matches!(word.text.as_str(), "-l" | "--list" | "--version" | "--help"));
    Some(if parts.iter().any(drops) {
        CommandEffect::new(Risk::High, format!("deletes data in {database}"))
    } else if lists || !parts.is_empty() && parts.iter().all(|text| QUERIES.contains(&first_word(text).as_str())) {
        CommandEffect::new(Risk::Medium, format!("reads from {database}"))
    } else {
        CommandEffect::new(Risk::High, format!("runs statements in {database}"))
    })
}

/// Returns the statements that are passed to a client as arguments. Statements in files or on standard input are not
/// included.
fn statement_texts<'a>(words: &'a [Arg], options: &[&str]) -> Vec<&'a str> {
    let mut texts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        if options.contains(&text) {
            texts.extend(words.get(at + 1).map(|next| next.text.as_str()));
        } else if let Some((name, value)) = text.split_once('=')
            && options.contains(&name)
        {
            texts.push(value);
        } else if let Some(value) = options.iter().filter(|option| option.len() == 2).find_map(|option| text.strip_prefix(option))
        {
            texts.push(value);
        }
    }
    texts
}
