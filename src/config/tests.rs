use super::file::{ConfigValue, ValueOrigin};
use super::instructions::Length;
use super::settings::Llm;
use super::trust::{Project, TrustProof};
use super::*;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

fn load(toml: &str, set: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Settings::from_values(file::parse(toml, Path::new("config.toml"))?, &set)
}

fn environment(pairs: &[(&str, &str)]) -> Environment {
    Environment::from_pairs(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

#[test]
fn an_empty_configuration_yields_the_defaults() {
    let defaults = Llm {
        idle_timeout: Duration::from_secs(120),
        connect_timeout: Duration::from_secs(10),
        max_retries: 3,
        retry_base: Duration::from_millis(500),
    };
    assert_eq!(load("", &[]).unwrap().llm, defaults);
    assert_eq!(load("[llm]\n[ui]\n[tools]\n[retention]\n[approval]\n[mcp.servers]\n", &[]).unwrap().llm, defaults);
}

#[test]
fn every_default_is_a_valid_value() {
    for key in schema::KEYS.iter().filter(|key| !key.default.is_empty()) {
        let toml = format!("{} = {}", key.pattern.join(".").replace('*', "x"), key.default);
        load(&toml, &[]).unwrap_or_else(|error| panic!("{toml}: {error}"));
    }
}

#[test]
fn flags_take_precedence_over_the_file() {
    let toml = "model.default = 'anthropic/a'\n[llm]\nmax_retries = 1\nretry_base_ms = 0x10\n";
    let settings = load(toml, &[("llm.max_retries", "7"), ("model.default", "openai-chat/b")]).unwrap();
    assert_eq!((settings.llm.max_retries, settings.llm.retry_base), (7, Duration::from_millis(16)));
    assert_eq!(settings.text(&["model", "default"]), Some("openai-chat/b"));
    let origin = &settings.entry(&["llm", "retry_base_ms"]).unwrap().origin;
    assert_eq!(*origin, ValueOrigin::File { path: "config.toml".into(), line: 4 });
}

#[test]
fn every_mistake_is_reported_with_its_line_and_the_expected_value() {
    for (toml, said) in [
        ("modle = 1", "`config.toml` line 1: unknown key `modle`; did you mean `model`?"),
        ("\n[model]\ndefualt = 'a/b'", "line 3: unknown key `model.defualt`; did you mean `model.default`?"),
        ("[llm]\nretries = 3", "line 2: unknown key `llm.retries`; use `connect_timeout_seconds`, `idle_timeout_seconds`"),
        ("max_retries = 3", "did you mean `llm.max_retries`?"),
        ("[providers.x]\nurl = 'https://h'", "line 2: unknown key `providers.x.url`"),
        ("[providers.x]\nbase_ulr = 'https://h'", "did you mean `providers.x.base_url`?"),
        ("[llm]\nmax_retries = 'three'", "line 2: `llm.max_retries` is `'three'`, expected an integer from 0 to 100"),
        ("[llm]\nmax_retries = -1", "is `-1`, expected an integer"),
        ("[llm]\nmax_retries = 101", "is `101`, expected an integer from 0 to 100"),
        ("[llm]\nmax_retries = 99999999999999999999999", "expected an integer"),
        ("[llm]\nmax_retries = 1.5", "expected an integer"),
        ("llm = 3", "line 1: `llm` is `3`, expected a table"),
        ("[[llm]]\nmax_retries = 3", "expected a table"),
        ("[ui]\nplain = 'yes'", "expected true or false"),
        ("[providers.x]\napi = 'grpc'", "expected one of \"anthropic\", \"openai-responses\""),
        ("[providers.x]\nmodels = 'one'", "expected an array of strings"),
        ("[providers.x]\nmodels = [1]", "expected an array of strings"),
        ("[mcp.servers.x]\nenv = { A = 1 }", "expected a table of strings"),
        ("model.default = 'sonnet'", "expected PROVIDER/NAME, for example \"anthropic/claude-sonnet-5\""),
        ("providers.x.base_url = 'http://example.com'", "line 1: `providers.x.base_url`: `http://example.com` would send"),
        ("a = \n", "line 1: "),
        ("[llm]\nmax_retries = 1\nmax_retries = 2", "line 3: "),
        ("[llm\n", "invalid TOML"),
        (&"[".repeat(100_000), "invalid TOML"),
    ] {
        let message = load(toml, &[]).unwrap_err().to_string();
        assert!(message.contains(said), "{}: {message}", &toml[..toml.len().min(60)]);
    }
    let both = load("modle = 1\n[llm]\nmax_retries = true", &[]).unwrap_err().to_string();
    assert_eq!(both.lines().count(), 2, "{both}");
}

#[test]
fn invalid_set_flags_are_reported_by_name() {
    for (name, value, said) in [
        ("llm.max_retrys", "3", "did you mean `llm.max_retries`?"),
        ("llm.max_retries", "many", "--set: invalid value `many` for `llm.max_retries`: expected an integer"),
        ("llm", "3", "unknown key `llm`"),
        ("", "3", "unknown key"),
        ("ui.plain", "1", "expected true or false"),
        ("model.default", "x", "expected PROVIDER/NAME"),
        ("providers.x.base_url", "ftp://h", "--set: `providers.x.base_url`: `ftp://h` has the scheme `ftp:`"),
    ] {
        let message = load("", &[(name, value)]).unwrap_err().to_string();
        assert!(message.contains(said), "{name}={value}: {message}");
    }
}

#[test]
fn set_flags_accept_plain_words_and_toml() {
    let set =
        [("model.default", "\"a/b\""), ("providers.x.models", "['m', 'n']"), ("providers.x.api", "gemini"), ("ui.plain", "true")];
    let settings = load("", &set).unwrap();
    assert_eq!(settings.text(&["model", "default"]), Some("a/b"));
    assert_eq!(settings.text(&["providers", "x", "api"]), Some("gemini"));
    assert_eq!(settings.entry(&["providers", "x", "models"]).unwrap().value, ConfigValue::List(vec!["m".into(), "n".into()]));
    assert_eq!(settings.entry(&["ui", "plain"]).unwrap().value, ConfigValue::Flag(true));
}

#[test]
fn unreadable_configuration_files_are_reported_by_name() {
    let dir = TempDir::new().unwrap();
    let directories = Directories::new(dir.path(), dir.path());
    let file = directories.config_file();
    let message = |content: &[u8]| {
        fs::write(&file, content).unwrap();
        Settings::load(&directories, None, &[]).unwrap_err().to_string()
    };
    assert!(Settings::load(&directories, None, &[]).is_ok(), "no file is no mistake");
    assert!(message(b"[llm]\nmax_retries = 3 # \xff").contains("config.toml` line 2: not UTF-8 text"));
    assert!(message(&vec![b'#'; 2 << 20]).contains("larger than 1 MiB"));
    fs::write(&file, "\u{feff}[llm]\r\nmax_retries = 4\r\n").unwrap();
    assert_eq!(Settings::load(&directories, None, &[]).unwrap().llm.max_retries, 4);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(Settings::load(&directories, None, &[]).unwrap_err().to_string().contains("not a regular file"));
}

#[test]
fn all_keys_are_listed_and_values_are_shown_with_their_origin() {
    for key in schema::KEYS {
        assert!(schema::key_list().contains(&key.dotted_name()), "{}", key.dotted_name());
    }
    let toml = "[providers.mine]\nbase_url = 'https://h'\n[mcp.servers.s]\nenv = { TOKEN = 'hush' }\n";
    let shown = load(toml, &[("llm.max_retries", "7")]).unwrap().show();
    for line in [
        "llm.max_retries = 7  # --set",
        "llm.retry_base_ms = 500  # default",
        "providers.mine.base_url = \"https://h\"  # config.toml line 2",
        "mcp.servers.s.env = { TOKEN = \"…\" }  # config.toml line 4",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
}

#[test]
fn text_tool_limits_are_parsed_in_every_notation() {
    let set =
        load("[tools.text]\nallowed_extensions = ['.md', '*.TXT', 'rs']\nmax_file_size = '10MB'\n", &[]).unwrap().tools.text;
    assert_eq!((set.allowed_extensions, set.max_file_size), (vec!["md".into(), "txt".into(), "rs".into()], Some(10 << 20)));
    assert!(set.enabled && set.allow_create && !set.allow_delete);
    let unset = load("", &[]).unwrap().tools.text;
    assert_eq!((unset.allowed_extensions, unset.max_file_size), (vec!["md".into(), "txt".into()], Some(10 << 20)));
    assert!(load("[tools.text]\nallowed_extensions = []\n", &[]).unwrap().tools.text.allowed_extensions.is_empty());
    for (given, bytes) in [("'4096'", 4096), ("4096", 4096), ("'1 KiB'", 1024), ("'2g'", 2 << 30), ("0", 0)] {
        let set = load(&format!("[tools.text]\nmax_file_size = {given}\n"), &[]).unwrap();
        assert_eq!(set.tools.text.max_file_size, Some(bytes), "{given}");
    }
    for wrong in ["'ten'", "-1", "'10 XB'", "true", "'99999999999999999999'", "1.5"] {
        let error = load(&format!("[tools.text]\nmax_file_size = {wrong}\n"), &[]).unwrap_err().to_string();
        assert!(error.contains("a number of bytes, or a string such as"), "{error}");
    }
    assert_eq!(load("", &[("tools.text.max_file_size", "1MB")]).unwrap().tools.text.max_file_size, Some(1 << 20));
}

#[test]
fn environment_variables_set_the_directories() {
    let found = Directories::find(&environment(&[("AYE_CONFIG_DIR", "/c"), ("AYE_DATA_DIR", "/d")])).unwrap();
    assert_eq!(found, Directories::new("/c", "/d"));
    let found = Directories::find(&environment(&[("AYE_CONFIG_DIR", "c"), ("AYE_DATA_DIR", "/d")])).unwrap();
    assert_eq!(found.config, std::env::current_dir().unwrap().join("c"));
}

const MINE: &str = "
[providers.mine]
api = 'openai-chat'
base_url = 'https://models.example.com/v1/'
api_key_env = 'MINE_KEY'
[providers.anthropic]
base_url = 'https://proxy.example.com'
[providers.openai-chat]
models = ['small', 'large']
[providers.half]
base_url = 'https://h'
[providers.nowhere]
api = 'gemini'
";

#[test]
fn the_model_is_chosen_by_flag_then_configuration_then_environment() {
    let anthropic = ("ANTHROPIC_API_KEY", "ka");
    let openai = ("OPENAI_API_KEY", "ko");
    let home = "https://api.anthropic.com";
    for (toml, flag, pairs, expected) in [
        ("", None, &[anthropic][..], ("anthropic/claude-sonnet-5", ApiSetting::Anthropic, home, Some("ka"))),
        ("", None, &[openai, anthropic], ("anthropic/claude-sonnet-5", ApiSetting::Anthropic, home, Some("ka"))),
        ("", None, &[openai], ("openai/gpt-5.5", ApiSetting::OpenAiResponses, "https://api.openai.com/v1", Some("ko"))),
        (
            "",
            None,
            &[openai, ("ANTHROPIC_BASE_URL", "https://left.over")],
            ("openai/gpt-5.5", ApiSetting::OpenAiResponses, "https://api.openai.com/v1", Some("ko")),
        ),
        (
            "",
            None,
            &[("OPENAI_BASE_URL", "http://localhost:11434/v1/")],
            ("openai-chat/gpt-5.5", ApiSetting::OpenAiChat, "http://localhost:11434/v1", None),
        ),
        (
            "",
            None,
            &[("ANTHROPIC_API_KEY", " "), ("LLM_GATEWAY_ENDPOINT", "https://gate"), ("LLM_GATEWAY_AUTH_TOKEN", "kg")],
            ("gateway/claude-sonnet-5", ApiSetting::OpenAiChat, "https://gate", Some("kg")),
        ),
        (
            "",
            Some("openai-chat/org/model-x"),
            &[anthropic, openai],
            ("openai-chat/org/model-x", ApiSetting::OpenAiChat, "https://api.openai.com/v1", Some("ko")),
        ),
        ("", Some("local/qwen"), &[], ("local/qwen", ApiSetting::OpenAiChat, "http://localhost:11434/v1", None)),
        (
            "",
            Some("anthropic/x"),
            &[anthropic, ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080")],
            ("anthropic/x", ApiSetting::Anthropic, "http://127.0.0.1:8080", Some("ka")),
        ),
        (
            "model.default = 'local/qwen'",
            None,
            &[anthropic],
            ("local/qwen", ApiSetting::OpenAiChat, "http://localhost:11434/v1", None),
        ),
        (
            "model.default = 'local/qwen'",
            Some("anthropic/x"),
            &[anthropic],
            ("anthropic/x", ApiSetting::Anthropic, home, Some("ka")),
        ),
        (
            MINE,
            Some("mine/m"),
            &[("MINE_KEY", "km")],
            ("mine/m", ApiSetting::OpenAiChat, "https://models.example.com/v1", Some("km")),
        ),
        (MINE, None, &[openai], ("openai-chat/small", ApiSetting::OpenAiChat, "https://api.openai.com/v1", Some("ko"))),
        (
            MINE,
            Some("anthropic/x"),
            &[anthropic],
            ("anthropic/x", ApiSetting::Anthropic, "https://proxy.example.com", Some("ka")),
        ),
        (
            MINE,
            Some("anthropic/x"),
            &[anthropic, ("ANTHROPIC_BASE_URL", "https://env.example.com")],
            ("anthropic/x", ApiSetting::Anthropic, "https://env.example.com", Some("ka")),
        ),
    ] {
        let choice = load(toml, &[]).unwrap().choose_model(flag, &environment(pairs), &Credentials::none()).unwrap();
        let key = choice.key.as_ref().map(ApiKey::reveal);
        assert_eq!((choice.name().as_str(), choice.api, choice.base_url.as_str(), key), expected);
    }
}

#[test]
fn openai_uses_the_responses_api_and_compatible_servers_use_chat_completions() {
    let own = "https://api.openai.com/v1";
    let key = ("OPENAI_API_KEY", "ko");
    let mine = "[providers.openai]\nmodels = ['mine']\n";
    let chat = "[providers.openai-chat]\napi = 'openai-chat'\n";
    let elsewhere = "[providers.openai-chat]\nbase_url = 'https://models.example.com/v1'\n";
    for (toml, flag, address, expected) in [
        ("", None, None, ("openai/gpt-5.5", ApiSetting::OpenAiResponses, own)),
        (mine, None, None, ("openai/mine", ApiSetting::OpenAiResponses, own)),
        (chat, None, None, ("openai-chat/gpt-5.5", ApiSetting::OpenAiChat, own)),
        (elsewhere, None, None, ("openai-chat/gpt-5.5", ApiSetting::OpenAiChat, "https://models.example.com/v1")),
        ("", Some("openai/x"), None, ("openai/x", ApiSetting::OpenAiResponses, own)),
        ("", Some("openai-chat/x"), None, ("openai-chat/x", ApiSetting::OpenAiChat, own)),
        ("", None, Some("https://api.openai.com/v1/"), ("openai/gpt-5.5", ApiSetting::OpenAiResponses, own)),
        (
            "",
            None,
            Some("https://API.OpenAI.com:443/v1"),
            ("openai/gpt-5.5", ApiSetting::OpenAiResponses, "https://API.OpenAI.com:443/v1"),
        ),
        (
            "",
            None,
            Some("https://eu.api.openai.com/v1"),
            ("openai/gpt-5.5", ApiSetting::OpenAiResponses, "https://eu.api.openai.com/v1"),
        ),
        (
            "",
            None,
            Some("https://api.openai.com.example.org/v1"),
            ("openai-chat/gpt-5.5", ApiSetting::OpenAiChat, "https://api.openai.com.example.org/v1"),
        ),
        (
            "",
            None,
            Some("https://notapi.openai.com/v1"),
            ("openai-chat/gpt-5.5", ApiSetting::OpenAiChat, "https://notapi.openai.com/v1"),
        ),
        ("", None, Some("http://localhost:8080/v1"), ("openai-chat/gpt-5.5", ApiSetting::OpenAiChat, "http://localhost:8080/v1")),
        (
            "",
            Some("openai/x"),
            Some("http://localhost:8080/v1"),
            ("openai/x", ApiSetting::OpenAiResponses, "http://localhost:8080/v1"),
        ),
        (
            mine,
            None,
            Some("http://localhost:8080/v1"),
            ("openai-chat/gpt-5.5", ApiSetting::OpenAiChat, "http://localhost:8080/v1"),
        ),
    ] {
        let pairs: Vec<_> = [key].into_iter().chain(address.map(|url| ("OPENAI_BASE_URL", url))).collect();
        let choice = load(toml, &[]).unwrap().choose_model(flag, &environment(&pairs), &Credentials::none()).unwrap();
        assert_eq!((choice.name().as_str(), choice.api, choice.base_url.as_str()), expected, "{toml} {flag:?} {address:?}");
        assert_eq!(choice.key.as_ref().map(ApiKey::reveal), Some("ko"));
    }
}

#[test]
fn known_providers_need_only_a_key() {
    for (flag, variable, api, address) in [
        ("openrouter/anthropic/claude-sonnet-5", "OPENROUTER_API_KEY", ApiSetting::OpenAiChat, "https://openrouter.ai/api/v1"),
        ("deepseek/deepseek-chat", "DEEPSEEK_API_KEY", ApiSetting::OpenAiChat, "https://api.deepseek.com"),
        ("mistral/x", "MISTRAL_API_KEY", ApiSetting::OpenAiChat, "https://api.mistral.ai/v1"),
        ("xai/grok-4", "XAI_API_KEY", ApiSetting::OpenAiChat, "https://api.x.ai/v1"),
        ("groq/openai/gpt-oss-120b", "GROQ_API_KEY", ApiSetting::OpenAiChat, "https://api.groq.com/openai/v1"),
        ("gemini/x", "GOOGLE_API_KEY", ApiSetting::Gemini, "https://generativelanguage.googleapis.com"),
        ("gemini/x", "GEMINI_API_KEY", ApiSetting::Gemini, "https://generativelanguage.googleapis.com"),
    ] {
        let settings = load("", &[]).unwrap();
        let choice = settings.choose_model(Some(flag), &environment(&[(variable, "k")]), &Credentials::none()).unwrap();
        assert_eq!((choice.name().as_str(), choice.api, choice.base_url.as_str()), (flag, api, address));
        assert_eq!((choice.key_place, choice.key_variable.as_str()), (KeyPlace::Environment, variable));
        assert!(settings.key_variables().iter().any(|name| name == variable));
        let default = settings.choose_model(None, &environment(&[(variable, "k")]), &Credentials::none()).unwrap();
        assert_eq!(default.provider, choice.provider);
    }
    let gateway = [("LLM_GATEWAY_ENDPOINT", "https://gate"), ("LLM_GATEWAY_AUTH_TOKEN", "kg")];
    let settings = load("[providers.gateway]\napi = 'anthropic'\nmodels = ['large']\n", &[]).unwrap();
    let choice = settings.choose_model(None, &environment(&gateway), &Credentials::none()).unwrap();
    assert_eq!(
        (choice.name().as_str(), choice.api, choice.base_url.as_str()),
        ("gateway/large", ApiSetting::Anthropic, "https://gate")
    );
}

#[cfg(unix)]
#[test]
fn saved_keys_are_used_if_the_environment_has_none() {
    let dir = TempDir::new().unwrap();
    let kept = Credentials::in_directories(&Directories::new(dir.path(), dir.path()));
    kept.keep_in_file("openai", &ApiKey::new("kept-key")).unwrap();
    kept.keep_in_file("mine", &ApiKey::new("mine-key")).unwrap();
    let choose = |toml: &str, flag, pairs: &[(&str, &str)]| {
        let choice = load(toml, &[]).unwrap().choose_model(flag, &environment(pairs), &kept).unwrap();
        (choice.name(), choice.key_place, choice.key.map(|key| key.reveal().to_owned()).unwrap_or_default())
    };
    let found = |name: &str, place, key: &str| (name.to_owned(), place, key.to_owned());
    let environment = [("OPENAI_API_KEY", "ko")];
    assert_eq!(choose("", Some("openai/x"), &environment), found("openai/x", KeyPlace::Environment, "ko"));
    assert_eq!(choose("", Some("openai-chat/x"), &[]), found("openai-chat/x", KeyPlace::File, "kept-key"));
    assert_eq!(choose("", None, &[]), found("openai/gpt-5.5", KeyPlace::File, "kept-key"));
    assert_eq!(choose("", None, &[("ANTHROPIC_API_KEY", "ka")]).1, KeyPlace::Environment, "what is set goes first");
    assert_eq!(choose(MINE, Some("mine/m"), &[]), found("mine/m", KeyPlace::File, "mine-key"));
}

#[test]
fn the_error_for_a_missing_key_lists_alternatives() {
    for (flag, variable) in [
        (None, "ANTHROPIC_API_KEY or OPENAI_API_KEY"),
        (Some("anthropic/x"), "ANTHROPIC_API_KEY"),
        (Some("openai-chat/x"), "OPENAI_API_KEY"),
        (Some("gemini/x"), "GEMINI_API_KEY"),
        (Some("gateway/x"), "LLM_GATEWAY_ENDPOINT"),
    ] {
        let error = load("", &[]).unwrap().choose_model(flag, &environment(&[]), &Credentials::none()).unwrap_err();
        let NoModel::NoKey(problem) = error else { panic!("{flag:?}: {error:?}") };
        let message = problem.one_line();
        for part in [variable, "OPENAI_BASE_URL=http://localhost:11434/v1", "aye demo"] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(message.contains("aye auth login"), flag != Some("gateway/x"), "{message}");
    }
}

#[test]
fn unusable_providers_are_reported_by_name() {
    for (flag, pairs, said) in [
        ("antropic/x", &[][..], "unknown provider `antropic`; did you mean `anthropic`?"),
        ("elsewhere/x", &[], "`[providers.elsewhere]`"),
        ("half/x", &[], "set `providers.half.api`"),
        ("nowhere/x", &[], "set `providers.nowhere.base_url`"),
        ("anthropic/x", &[("ANTHROPIC_BASE_URL", "http://example.com")], "ANTHROPIC_BASE_URL: `http://example.com` would send"),
        ("openai-chat/x", &[("OPENAI_BASE_URL", "localhost:80")], "OPENAI_BASE_URL: `localhost:80` has the scheme `localhost:`"),
    ] {
        let error = load(MINE, &[]).unwrap().choose_model(Some(flag), &environment(pairs), &Credentials::none()).unwrap_err();
        assert!(matches!(&error, NoModel::Wrong(error) if error.to_string().contains(said)), "{flag}: {error}");
    }
}

#[test]
fn keys_are_sent_unencrypted_only_to_loopback_addresses() {
    for good in ["https://h", "https://h:8443/v1", "http://localhost:1", "http://127.9.9.9", "http://[::1]:80/v1"] {
        assert_eq!(address::check(good).as_deref(), Ok(good));
    }
    for bad in [
        "http://h",
        // The address of this name depends on the resolver.
        "http://a.localhost",
        "http://10.0.0.1",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1@evil.example",
        "https://user:secret@h",
        "https://h?key=secret",
        "https://h#x",
        "file:///etc/passwd",
        "h",
        "",
    ] {
        assert!(address::check(bad).is_err(), "{bad}");
    }
    assert!(!address::check("https://user:secret@h").unwrap_err().one_line().contains("secret"));
}

#[test]
fn debug_output_never_contains_a_key() {
    let choice = load("", &[])
        .unwrap()
        .choose_model(None, &environment(&[("ANTHROPIC_API_KEY", "sk-hush")]), &Credentials::none())
        .unwrap();
    assert!(!format!("{choice:?}").contains("hush"));
}

/// Returns the canonical path of a directory.
fn real(dir: &TempDir) -> std::path::PathBuf {
    dir.path().canonicalize().unwrap()
}

fn texts(project: &Project) -> Vec<String> {
    project.instructions(&TrustProof::for_this_run()).iter().map(|file| file.text.clone()).collect()
}

#[test]
fn instructions_are_read_from_the_repository_root_down_to_the_workspace() {
    let dir = TempDir::new().unwrap();
    let root = real(&dir).join("repo");
    let workspace = root.join("crates/core");
    fs::create_dir_all(&workspace).unwrap();
    fs::write(root.parent().unwrap().join("AGENTS.md"), "outside").unwrap();
    fs::write(root.join("AGENTS.md"), "root").unwrap();
    fs::write(root.join("CLAUDE.md"), "not this one too").unwrap();
    fs::write(workspace.join("CLAUDE.md"), "core").unwrap();
    assert_eq!(texts(&Project::examine(&workspace)), ["core"], "without a repository only the workspace counts");
    fs::create_dir(root.join(".git")).unwrap();
    let project = Project::examine(&workspace);
    assert_eq!(texts(&project), ["root", "core"]);
    let names: Vec<_> = project.effective_items().map(|item| item.name.clone()).collect();
    assert_eq!(names, [root.join("AGENTS.md").to_string_lossy().into_owned(), "CLAUDE.md".to_owned()]);
}

#[cfg(unix)]
#[test]
fn symlinks_out_of_the_workspace_and_pipes_provide_no_instructions() {
    let (dir, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let workspace = real(&dir);
    fs::write(elsewhere.path().join("key"), "secret").unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("key"), workspace.join("AGENTS.md")).unwrap();
    nix::unistd::mkfifo(&workspace.join("CLAUDE.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(texts(&Project::examine(&workspace)), Vec::<String>::new());
    fs::remove_file(workspace.join("AGENTS.md")).unwrap();
    fs::write(workspace.join("real.md"), "mine").unwrap();
    std::os::unix::fs::symlink("real.md", workspace.join("AGENTS.md")).unwrap();
    assert_eq!(texts(&Project::examine(&workspace)), ["mine"]);
}

#[test]
fn long_instructions_are_truncated_at_a_character_boundary_and_marked() {
    let dir = TempDir::new().unwrap();
    let workspace = real(&dir);
    fs::write(workspace.join("AGENTS.md"), "x".to_owned() + &"é".repeat(64 << 10)).unwrap();
    let project = Project::examine(&workspace);
    let [file] = project.instructions(&TrustProof::for_this_run()) else { panic!("one file") };
    assert_eq!((file.length, file.text.len(), file.text.contains('\u{fffd}')), (Length::Cut, (64 << 10) - 1, false));
    fs::write(workspace.join("AGENTS.md"), "  \n").unwrap();
    assert_eq!(Project::examine(&workspace).effective_items().count(), 0);
    assert_eq!(instructions_of_person(&workspace), None);
    fs::write(workspace.join("AGENTS.md"), "mine").unwrap();
    assert_eq!(instructions_of_person(&workspace).unwrap().text, "mine");
}
