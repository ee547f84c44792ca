//! Project layer: the `config.toml` of a trusted project, which can only tighten the settings. Keys that a project must
//! not set are ignored and reported.

use super::ConfigError;
use super::file::{self, ConfigEntry, ConfigValue, Values};
use super::schema;
use super::settings::Settings;
use crate::protocol::Problem;
use std::path::Path;

/// How a project may tighten a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TightenRule {
    /// Only to a smaller number. If no number is set, any number is accepted.
    BySmaller,
    /// Only to this value.
    By(bool),
    /// With a list of enabled or disabled tools that applies in addition to the user's lists.
    ByList,
    /// To the names that both the user's list and the project's list contain.
    ByIntersection,
}

/// Keys that a project can tighten, and how.
const TIGHTEN: &[(&[&str], TightenRule)] = &[
    (&["agents", "*"], TightenRule::BySmaller),
    (&["budget", "*"], TightenRule::BySmaller),
    (&["llm", "max_retries"], TightenRule::BySmaller),
    (&["search", "max_per_session"], TightenRule::BySmaller),
    (&["tools", "absolute_paths_only"], TightenRule::By(true)),
    (&["tools", "follow_symlinks"], TightenRule::By(false)),
    (&["tools", "disabled"], TightenRule::ByList),
    (&["tools", "enabled"], TightenRule::ByList),
    (&["tools", "text", "enabled"], TightenRule::By(false)),
    (&["tools", "text", "allow_create"], TightenRule::By(false)),
    (&["tools", "text", "allow_delete"], TightenRule::By(false)),
    (&["tools", "text", "max_file_size"], TightenRule::BySmaller),
    (&["tools", "text", "allowed_extensions"], TightenRule::ByIntersection),
    (&["mcp", "servers", "*", "enabled"], TightenRule::By(false)),
    (&["lsp", "enabled"], TightenRule::By(false)),
    (&["lsp", "*", "enabled"], TightenRule::By(false)),
];

/// Reasons why other keys are ignored, by key prefix.
const REASONS: &[(&[&str], &str)] = &[
    (&["profiles"], "a project cannot define profiles"),
    (&["providers", "*", "api_key_command"], "a project cannot start programs or set keys"),
    (&["providers", "*", "headers"], "a project cannot set the headers of requests"),
    (&["providers"], "a project cannot set providers, URLs or keys"),
    (&["auth"], "a project cannot choose where keys are saved"),
    (&["model"], "a project cannot choose the model"),
    (&["http"], "a project cannot set which certificates are trusted"),
    (&["models"], "a project cannot choose the list of models"),
    (&["update"], "a project cannot choose where aye looks for new versions"),
    (&["llm"], "a project cannot configure model requests"),
    (&["context"], "a project cannot set when conversations are compacted"),
    (&["ui"], "a project cannot configure the UI"),
    (&["status"], "a project cannot set the status row or its command"),
    (&["approval", "mode"], "a project cannot choose the mode"),
    (&["approval", "approve"], "a project cannot set what needs approval; its policy can require `approve = \"command\"`"),
    (&["approval"], "a project cannot set how approvals are answered"),
    (&["retention"], "retention applies to the sessions of all projects"),
    (&["mcp", "servers"], "a project's MCP servers belong in `.mcp.json`"),
    (&["lsp"], "a project cannot choose the programs of language servers"),
    (&["mcp"], "a project cannot set how MCP tools are offered"),
    (&["services", "sessions", "token_command"], "a project cannot start programs or choose services"),
    (&["services"], "a project cannot choose services or where sessions are stored"),
    (&["search"], "a project cannot choose the search service or its address"),
    (&["tools", "on_demand"], "a project cannot set how tools are offered"),
    (&["tools", "shell"], "a project cannot choose the shell for commands"),
    (&["tools", "conflict"], "a project cannot choose which tool an ambiguous name means"),
];

/// Report on what a project's file changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProjectLayer {
    /// Keys that tighten the settings, with their new values: `budget.task_steps = 50`.
    pub taken: Vec<String>,
    /// Messages about ignored keys, each with the line number and the reason.
    pub ignored: Vec<String>,
}

impl ProjectLayer {
    /// Reads a project's `config.toml`. Returns the tightened settings and a report.
    pub(crate) fn read(bytes: &[u8], path: &Path, settings: &Settings) -> Result<(Settings, Self), ConfigError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ConfigError::single(file::not_utf8(path)))?;
        let (said, ignored) = file::parse_lenient(text, path)?;
        let mut values = settings.values.clone();
        let mut layer = Self { taken: Vec::new(), ignored: ignored.iter().map(Problem::one_line).collect() };
        for (key, entry) in said {
            match tighten(&key, &entry.value, &values) {
                Ok(value) => {
                    layer.taken.push(format!("{} = {}", key.join("."), entry.value.as_toml()));
                    if let Some(value) = value {
                        values.insert(key, ConfigEntry { value, origin: entry.origin });
                    }
                }
                Err(why) => {
                    layer.ignored.push(format!("{}: `{}` is ignored: {why}", entry.origin, key.join(".")));
                }
            }
        }
        Ok((Settings::from_values(values, &[])?, layer))
    }
}

/// Returns the tightened value, or the reason why the key is ignored. Returns `Ok(None)` if the value applies in
/// addition to the current one instead of replacing it.
fn tighten(key: &[String], said: &ConfigValue, values: &Values) -> Result<Option<ConfigValue>, String> {
    let fits = |pattern: &[&str]| pattern.len() == key.len() && has_prefix(key, pattern);
    let Some((_, tightens)) = TIGHTEN.iter().find(|(pattern, _)| fits(pattern)) else {
        let reason = REASONS.iter().find(|(start, _)| has_prefix(key, start));
        return Err(reason.map_or("a project can only tighten settings", |(_, reason)| reason).to_owned());
    };
    let set = values.get(key).map(|entry| &entry.value);
    let usual = || schema::find(key).map(|key| key.default).filter(|default| !default.is_empty());
    match (tightens, said) {
        (TightenRule::BySmaller, ConfigValue::Number(new) | ConfigValue::Dollars(new)) => {
            let now = match set {
                Some(ConfigValue::Number(now) | ConfigValue::Dollars(now)) => Some(*now),
                _ => usual().and_then(|default| default.parse().ok()),
            };
            match now {
                Some(now) if *new > now => Err(format!("the project would raise the limit, which stays at {now}")),
                _ => Ok(Some(said.clone())),
            }
        }
        (TightenRule::By(wanted), ConfigValue::Flag(flag)) if flag == wanted => {
            let is_unknown_server = key.first().is_some_and(|table| table == "mcp")
                && !values.keys().any(|known| known.len() > 3 && known[..3] == key[..3]);
            if is_unknown_server { Err("your settings have no such server".to_owned()) } else { Ok(Some(said.clone())) }
        }
        (TightenRule::By(wanted), _) => Err(format!("only `{wanted}` tightens")),
        (TightenRule::ByList, _) => Ok(None),
        (TightenRule::ByIntersection, ConfigValue::List(new)) => {
            let plain = |text: &String| text.trim().trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase();
            let both = match set {
                Some(ConfigValue::List(now)) if !now.is_empty() => {
                    let now: Vec<String> = now.iter().map(plain).collect();
                    new.iter().filter(|text| now.contains(&plain(text))).cloned().collect()
                }
                _ => new.clone(),
            };
            if both.is_empty() {
                Err("the list has no entry in common with your list, which stays in effect".to_owned())
            } else {
                Ok(Some(ConfigValue::List(both)))
            }
        }
        (TightenRule::BySmaller | TightenRule::ByIntersection, _) => Err("a project can only tighten settings".to_owned()),
    }
}

fn has_prefix(key: &[String], start: &[&str]) -> bool {
    start.len() <= key.len() && start.iter().zip(key).all(|(start, name)| *start == "*" || start == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(own: &str, project: &str) -> (Settings, ProjectLayer) {
        let values = file::parse(own, Path::new("config.toml")).unwrap();
        let settings = Settings::from_values(values, &[]).unwrap();
        ProjectLayer::read(project.as_bytes(), Path::new(".aye/config.toml"), &settings).unwrap()
    }

    #[test]
    fn tightening_project_settings_apply_and_all_others_are_reported_with_a_reason() {
        let (settings, layer) = read(
            "[budget]\ntask_tokens = 1000\nsession_cost_usd = 5\n[tools.text]\nallowed_extensions = [\"md\", \"txt\"]\n",
            "[budget]\ntask_tokens = 500\ntask_steps = 50\nsession_cost_usd = 9\n[tools]\nfollow_symlinks = false\n\
             absolute_paths_only = false\ndisabled = [\"Delete\"]\n[tools.text]\nallow_delete = false\nallowed_extensions = [\".md\", \"rs\"]\n\
             [providers.x]\nbase_url = \"http://127.0.0.1:1\"\napi_key_command = [\"sh\"]\nheaders = { X-A = \"b\" }\n[approval]\nguard = \"strict\"\n[nonsense]\nx = 1\n[status]\ncommand = \"x\"\n",
        );
        assert_eq!(
            layer.taken,
            [
                "budget.task_steps = 50",
                "budget.task_tokens = 500",
                "tools.disabled = [\"Delete\"]",
                "tools.follow_symlinks = false",
                "tools.text.allow_delete = false",
                "tools.text.allowed_extensions = [\".md\", \"rs\"]",
            ]
        );
        for (key, why) in [
            ("budget.session_cost_usd", "raise the limit"),
            ("tools.absolute_paths_only", "only `true` tightens"),
            ("providers.x.base_url", "providers, URLs or keys"),
            ("providers.x.api_key_command", "start programs or set keys"),
            ("providers.x.headers", "the headers of requests"),
            ("approval.guard", "how approvals are answered"),
            ("status.command", "the status row"),
            ("nonsense", "unknown key"),
        ] {
            let line = layer.ignored.iter().find(|line| line.contains(&format!("`{key}`")));
            assert!(line.is_some_and(|line| line.contains(why)), "{key}: {:?}", layer.ignored);
        }
        assert_eq!(layer.ignored.len(), 8, "{:?}", layer.ignored);
        assert!(!settings.tools.follow_symlinks && !settings.tools.absolute_paths_only && !settings.tools.text.allow_delete);
        assert_eq!(settings.tools.text.allowed_extensions, ["md"]);
        assert_eq!(settings.task_steps(), Some(50));
        assert!(!settings.approval.strict);
        let again = ProjectLayer::read(b"[budget]\ntask_steps = 50\n", Path::new("x"), &settings).unwrap();
        assert_eq!(again.0.task_steps(), Some(50), "reading it twice changes nothing");
    }

    #[test]
    fn project_settings_never_relax_user_settings() {
        for line in [
            "[budget]\ntask_steps = 1001\n",
            "[budget]\nassumed_price = \"0,0\"\n",
            "[model]\nfallback = [\"a/b\"]\n",
            "[model]\nsummary = \"a/b\"\n",
            "[model]\nsmall = \"a/b\"\n",
            "[models]\ncatalogue_url = \"https://lists.example\"\n",
            "[update]\nurl = \"https://releases.example/latest.json\"\n",
            "[llm]\nmax_retries = 4\n",
            "[tools]\nfollow_symlinks = true\n",
            "[tools.text]\nenabled = true\n",
            "[mcp.servers.x]\ncommand = \"sh\"\n",
            "[mcp.servers.x]\nenabled = false\n",
            "[tools]\nshell = \"sh\"\n",
            "[retention]\nsession_days = 1\n",
            "[services.workspace]\nurl = \"s3://other\"\n",
            "[services.approvals]\nurl = \"https://a.example\"\n",
            "[services.audit]\nrequired = false\n",
            "[services.telemetry]\nurl = \"env\"\n",
            "[services.outbox]\nlimit = 1\n",
            "[services.sessions]\nurl = \"https://s.example\"\n",
            "[services.sessions]\ntoken_command = [\"sh\", \"-c\", \"true\"]\n",
        ] {
            let (_, layer) = read("[tools]\nfollow_symlinks = false\n", line);
            assert!(layer.taken.is_empty() && layer.ignored.len() == 1, "{line}: {layer:?}");
        }
        let (settings, layer) = read("[mcp.servers.x]\ncommand = \"sh\"\n", "[mcp.servers.x]\nenabled = false\n");
        assert_eq!(layer.taken, ["mcp.servers.x.enabled = false"]);
        assert!(settings.show().contains("mcp.servers.x.enabled = false  # .aye/config.toml line 2"), "{}", settings.show());
    }
}
