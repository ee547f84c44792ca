//! Model provider settings: the model, the URL and the key.

use super::api::ApiSetting;
use super::file::ConfigValue;
use super::no_model::{NoModel, WITHOUT_MODEL};
use super::search::{all_key_variables, search_key_variables, services_with_key};
use super::servers::Values as Headers;
use super::service::{ModelService, ServiceName};
use super::services::{APPROVALS_KEY, SESSIONS_KEY};
use super::workspace_store::WorkspaceStore;
use super::{ApiKey, ConfigError, Credentials, Environment, KeyCommand, KeyStorage, Settings, address, schema};
use super::{key_command, provider_headers, services};
use crate::protocol::Problem;
use std::collections::BTreeMap;

/// Model with everything that is needed to send requests to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderModel {
    pub provider: String,
    /// Name of the model at its provider, which may contain slashes.
    pub model: String,
    pub api: ApiSetting,
    /// Base URL, without a trailing slash.
    pub base_url: String,
    /// API key. Absent if the server needs none, if it has not been read yet, or if a cloud account authenticates the
    /// requests.
    pub key: Option<ApiKey>,
    pub key_place: KeyPlace,
    /// Environment variable from which the key can be read.
    pub key_variable: String,
    /// Program that prints the key, if `key_place` is a program.
    pub key_command: Option<KeyCommand>,
    /// Additional headers to send with every request.
    pub headers: Headers,
    pub service: ModelService,
}

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    Environment,
    /// A program, which has not been run yet because it may be slow.
    Command,
    /// An account at a cloud platform, whose credentials have not been read yet.
    Account,
    /// The keyring, which has not been queried yet because it may be slow.
    Keyring,
    File,
    Nowhere,
}

impl ProviderModel {
    /// Returns the full name of the model, such as `anthropic/claude-sonnet-5`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

/// Provider that aye supports out of the box.
struct BuiltInProvider {
    name: &'static str,
    api: ApiSetting,
    /// Default URL. Empty if the URL can only be set with an environment variable.
    home: &'static str,
    url_variable: &'static str,
    /// Environment variables that may contain the key. Messages mention only the first one.
    key_variables: &'static [&'static str],
    default_model: &'static str,
}

const fn built_in(
    name: &'static str,
    api: ApiSetting,
    home: &'static str,
    url_variable: &'static str,
    key_variables: &'static [&'static str],
    default_model: &'static str,
) -> BuiltInProvider {
    BuiltInProvider { name, api, home, url_variable, key_variables, default_model }
}

/// Name of the provider for OpenAI's Chat Completions API.
const CHAT: &str = "openai-chat";
/// Name of the provider for OpenAI's Responses API. Keys for both APIs are saved under this name.
const RESPONSES: &str = "openai";
const OPENAI: &str = "https://api.openai.com/v1";
const LOCAL_PORTS: [&str; 2] = ["llm", "local_ports"];
const LOCAL: &str = "http://localhost:11434/v1";

/// Built-in providers, in the order in which they are considered when no model is configured.
const BUILT_IN: &[BuiltInProvider] = &[
    built_in(
        "anthropic",
        ApiSetting::Anthropic,
        "https://api.anthropic.com",
        "ANTHROPIC_BASE_URL",
        &["ANTHROPIC_API_KEY"],
        "claude-sonnet-5",
    ),
    built_in(CHAT, ApiSetting::OpenAiChat, OPENAI, "OPENAI_BASE_URL", &["OPENAI_API_KEY"], "gpt-5.5"),
    built_in("gateway", ApiSetting::OpenAiChat, "", "LLM_GATEWAY_ENDPOINT", &["LLM_GATEWAY_AUTH_TOKEN"], "claude-sonnet-5"),
    built_in(RESPONSES, ApiSetting::OpenAiResponses, OPENAI, "OPENAI_BASE_URL", &["OPENAI_API_KEY"], "gpt-5.5"),
    built_in(
        "gemini",
        ApiSetting::Gemini,
        "https://generativelanguage.googleapis.com",
        "",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        "gemini-2.5-pro",
    ),
    built_in(
        "openrouter",
        ApiSetting::OpenAiChat,
        "https://openrouter.ai/api/v1",
        "",
        &["OPENROUTER_API_KEY"],
        "anthropic/claude-sonnet-5",
    ),
    built_in("deepseek", ApiSetting::OpenAiChat, "https://api.deepseek.com", "", &["DEEPSEEK_API_KEY"], "deepseek-chat"),
    built_in("mistral", ApiSetting::OpenAiChat, "https://api.mistral.ai/v1", "", &["MISTRAL_API_KEY"], "devstral-medium-latest"),
    built_in("xai", ApiSetting::OpenAiChat, "https://api.x.ai/v1", "", &["XAI_API_KEY"], "grok-4"),
    built_in("groq", ApiSetting::OpenAiChat, "https://api.groq.com/openai/v1", "", &["GROQ_API_KEY"], "openai/gpt-oss-120b"),
    built_in("local", ApiSetting::OpenAiChat, LOCAL, "", &[], "default"),
    // These providers have no default model, because deployments and access differ between users.
    built_in("azure", ApiSetting::OpenAiResponses, "", "", &["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"], ""),
    built_in("vertex", ApiSetting::Gemini, "", "", &[], ""),
    built_in("bedrock", ApiSetting::Anthropic, "", "", &["AWS_BEARER_TOKEN_BEDROCK"], ""),
];

/// Returns the environment variables that the built-in providers use: first those for API keys, then those for
/// addresses.
pub(crate) fn provider_variables() -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut keys, mut addresses) = (Vec::new(), Vec::new());
    for known in BUILT_IN {
        keys.extend(known.key_variables);
        addresses.extend(Some(known.url_variable).filter(|name| !name.is_empty()));
    }
    for names in [&mut keys, &mut addresses] {
        names.sort_unstable();
        names.dedup();
    }
    (keys, addresses)
}

impl Settings {
    /// Returns the model to use: the one given by the option, the configured default model, or otherwise the default
    /// model of the first provider with a key or an address in the environment, with a key program, or with a saved
    /// key, in this order. Does not query the keyring.
    pub(crate) fn choose_model(
        &self,
        flag: Option<&str>,
        environment: &Environment,
        credentials: &Credentials,
    ) -> Result<ProviderModel, NoModel> {
        if let Some(asked) = flag.or_else(|| self.text(&["model", "default"])) {
            let Some((provider, model)) = asked.split_once('/') else {
                return Err(ConfigError::single(format!("invalid model `{asked}`: must be PROVIDER/NAME")).into());
            };
            return self.at_provider(provider, model, environment, credentials);
        }
        let is_set = |variable: &&str| environment.get(variable).is_some();
        let has_default = |known: &&BuiltInProvider| !self.default_model(known).is_empty();
        let with_key = BUILT_IN.iter().filter(has_default).find(|known| known.key_variables.iter().any(is_set));
        let with_address = || BUILT_IN.iter().find(|known| is_set(&known.url_variable));
        if let Some(known) = with_key.or_else(with_address) {
            let known = self.preferred_api(known, environment);
            return self.at_provider(known.name, self.default_model(known), environment, credentials);
        }
        let has_command = |known: &&BuiltInProvider| {
            self.key_command(known.name).is_some() && self.base_url(known.name, Some(known), environment).is_ok()
        };
        if let Some(known) = BUILT_IN.iter().filter(has_default).find(has_command) {
            let known = self.preferred_api(known, environment);
            return self.at_provider(known.name, self.default_model(known), environment, credentials);
        }
        let kept = credentials.names()?;
        let is_kept = |name: &str| kept.iter().any(|kept| kept == name);
        let usable = |known: &&BuiltInProvider| {
            is_kept(key_provider(known.name)) && self.base_url(known.name, Some(known), environment).is_ok()
        };
        if let Some(known) = BUILT_IN.iter().filter(has_default).find(usable) {
            let known = self.preferred_api(known, environment);
            return self.at_provider(known.name, self.default_model(known), environment, credentials);
        }
        let commanded = self.providers().into_iter().filter(|name| self.key_command(name).is_some());
        let names: Vec<String> = commanded.chain(kept).collect();
        let configured = names.iter().find_map(|name| Some((name, self.provider_models(name).first()?)));
        match configured {
            Some((provider, model)) => self.at_provider(provider, model, environment, credentials),
            None => Err(no_key("no API key found", "ANTHROPIC_API_KEY or OPENAI_API_KEY", "PROVIDER")),
        }
    }

    /// Returns all environment variables that may contain a key. They are not passed on to commands.
    pub(crate) fn key_variables(&self) -> Vec<String> {
        let configured = self.values.iter().filter_map(|(path, entry)| match (path.as_slice(), &entry.value) {
            ([table, _, name], ConfigValue::Text(variable)) if table == "providers" && name == "api_key_env" => {
                Some(variable.clone())
            }
            _ => None,
        });
        let built_in = BUILT_IN.iter().flat_map(|known| known.key_variables).map(|&name| name.to_owned());
        let of_store = WorkspaceStore::secret_variables(&self.values).iter().copied();
        let of_services = services::secret_variables(&self.values);
        let known = all_key_variables().chain(of_store).map(str::to_owned);
        built_in.chain(configured).chain(known).chain(of_services).collect()
    }

    /// Returns all providers: first the built-in ones in search order, then any others in the settings.
    pub(crate) fn providers(&self) -> Vec<String> {
        let mut names: Vec<String> = BUILT_IN.iter().map(|known| known.name.to_owned()).collect();
        for path in self.values.keys() {
            if let [table, name, _] = path.as_slice()
                && table == "providers"
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        names
    }

    /// Returns the name under which `aye auth` saves a provider's key. Returns an error if the provider is unknown.
    pub(crate) fn key_name<'a>(&self, provider: &'a str) -> Result<&'a str, ConfigError> {
        let is_known = self.providers().iter().any(|name| name == provider)
            || services_with_key().any(|name| name == provider)
            || provider == APPROVALS_KEY
            || provider == SESSIONS_KEY;
        if is_known { Ok(key_provider(provider)) } else { Err(self.unknown_provider(provider)) }
    }

    /// Returns the environment variable for a provider's key. Of several variables, this is the first one that is set
    /// or, if none is, the first one.
    pub(crate) fn key_variable(&self, provider: &str, environment: &Environment) -> Option<String> {
        if let Some(named) = self.text(&["providers", provider, "api_key_env"]) {
            return Some(named.to_owned());
        }
        let built_in = BUILT_IN.iter().find(|known| known.name == provider).map(|known| known.key_variables);
        let names = built_in
            .or_else(|| ServiceName::for_provider(self, provider).map(ServiceName::key_variables))
            .unwrap_or_else(|| search_key_variables(provider));
        let set = names.iter().find(|name| environment.get(name).is_some());
        set.or(names.first()).map(|&name| name.to_owned())
    }

    /// Returns the program that prints a provider's key, if one is set.
    pub(crate) fn key_command(&self, provider: &str) -> Option<KeyCommand> {
        let command = |name: &str| KeyCommand::for_provider(&self.values, name);
        command(provider).or_else(|| command(key_provider(provider)))
    }

    /// Returns whether requests to a provider can be authenticated with a cloud account instead of a key.
    pub(crate) fn has_account(&self, provider: &str) -> bool {
        ServiceName::for_provider(self, provider).is_some_and(ServiceName::has_account)
    }

    /// Returns the catalogue entries that the settings assign to deployments, as a map from the full name of a model to
    /// the full name of its catalogue entry.
    pub(crate) fn deployments(&self) -> BTreeMap<String, String> {
        let tables = self.values.iter().filter_map(|(path, entry)| match (path.as_slice(), &entry.value) {
            ([table, provider, key], ConfigValue::Table(names)) if table == "providers" && key == "deployments" => {
                Some(names.iter().map(move |(name, entry)| (format!("{provider}/{name}"), entry.clone())))
            }
            _ => None,
        });
        tables.flatten().collect()
    }

    /// Returns those values of configured request headers that may be secrets.
    pub(crate) fn header_secrets(&self, environment: &Environment) -> Vec<String> {
        provider_headers::secrets(self, environment)
    }

    /// Returns a provider's default model, if it has one.
    pub(crate) fn provider_default_model(&self, provider: &str) -> Option<&str> {
        let known = BUILT_IN.iter().find(|known| known.name == provider);
        known
            .map(|known| self.default_model(known))
            .filter(|model| !model.is_empty())
            .or_else(|| self.provider_models(provider).first().map(String::as_str))
    }

    /// Returns the models listed in `[providers.NAME] models`.
    pub(crate) fn provider_models(&self, provider: &str) -> &[String] {
        self.entry(&["providers", provider, "models"]).and_then(|entry| entry.value.as_list()).unwrap_or_default()
    }

    /// Returns the API to use for a provider that has two. OpenAI supports tools of current models only in its
    /// Responses API, but any other server at `OPENAI_BASE_URL` is assumed to support only Chat Completions. If the
    /// settings contain `[providers.openai-chat]`, Chat Completions is used in any case.
    fn preferred_api<'a>(&self, known: &'a BuiltInProvider, environment: &Environment) -> &'a BuiltInProvider {
        let is_set_up =
            self.values.keys().any(|path| matches!(path.as_slice(), [table, name, _] if table == "providers" && name == CHAT));
        if known.name != CHAT || is_set_up {
            return known;
        }
        let is_own = self.base_url(CHAT, Some(known), environment).is_ok_and(|url| address::is_openai(&url));
        let responses = BUILT_IN.iter().find(|other| is_own && other.name == RESPONSES);
        responses.unwrap_or(known)
    }

    fn default_model<'a>(&'a self, known: &'a BuiltInProvider) -> &'a str {
        self.provider_models(known.name).first().map_or(known.default_model, String::as_str)
    }

    fn at_provider(
        &self,
        provider: &str,
        model: &str,
        environment: &Environment,
        credentials: &Credentials,
    ) -> Result<ProviderModel, NoModel> {
        let known = BUILT_IN.iter().find(|known| known.name == provider);
        let kind = ServiceName::for_provider(self, provider);
        let of_model = kind.filter(|_| self.text(&["providers", provider, "api"]).is_none()).map(|kind| kind.api_for(model));
        let Some(api) = of_model.or_else(|| self.api_for(provider)) else { return Err(self.unknown_provider(provider).into()) };
        let service = kind.map(|kind| kind.read(self, provider, environment)).transpose()?.unwrap_or_default();
        let base_url = match kind.filter(|_| self.text(&["providers", provider, "base_url"]).is_none()) {
            Some(kind) => kind.base_url(&service, provider, environment)?,
            None => self.base_url(provider, known, environment)?,
        };
        let key_variable = self.key_variable(provider, environment).unwrap_or_default();
        let key_command = self.key_command(provider);
        let (key, key_place) = match environment.secret(&key_variable) {
            Some(key) => (Some(key), KeyPlace::Environment),
            None if key_command.is_some() => (None, KeyPlace::Command),
            None => match credentials.storage_of(key_provider(provider))? {
                Some(KeyStorage::Keyring) => (None, KeyPlace::Keyring),
                Some(KeyStorage::File) => (credentials.file_secret(key_provider(provider))?, KeyPlace::File),
                None if kind.is_some_and(ServiceName::has_account) => (None, KeyPlace::Account),
                None => (None, KeyPlace::Nowhere),
            },
        };
        let headers = provider_headers::headers_for(self, provider, environment)?;
        // The user's own server may not need a key, but the provider's server always does.
        let at_home = kind.is_some() || known.is_some_and(|known| known.home == base_url);
        if key_place == KeyPlace::Nowhere && at_home && !key_variable.is_empty() && !address::is_local(&base_url) {
            return Err(no_key(&format!("no API key for `{provider}`"), &key_variable, key_provider(provider)));
        }
        let (provider, model) = (provider.to_owned(), model.to_owned());
        Ok(ProviderModel { provider, model, api, base_url, key, key_place, key_variable, key_command, headers, service })
    }

    fn api_for(&self, provider: &str) -> Option<ApiSetting> {
        let known = || BUILT_IN.iter().find(|known| known.name == provider).map(|known| known.api);
        let of_service = || ServiceName::for_provider(self, provider).map(|kind| kind.api_for(""));
        self.text(&["providers", provider, "api"]).map_or_else(|| known().or_else(of_service), ApiSetting::from_name)
    }

    fn base_url(&self, provider: &str, known: Option<&BuiltInProvider>, environment: &Environment) -> Result<String, NoModel> {
        let variable = known.map_or("", |known| known.url_variable);
        if let Some(given) = environment.get(variable) {
            let checked = address::check(given).map_err(|problem| ConfigError::single(problem.with_location(variable)))?;
            return Ok(checked);
        }
        if let Some(given) = self.text(&["providers", provider, "base_url"]) {
            // The URL was validated when it was parsed.
            return Ok(given.trim_end_matches('/').to_owned());
        }
        match known {
            Some(known) if !known.home.is_empty() => Ok(known.home.to_owned()),
            Some(_) => {
                let problem = Problem::new(format!("no URL for `{provider}`")).hint(format!("set {variable}, {OTHERWISE}"));
                Err(NoModel::NoKey(problem.hint(WITHOUT_MODEL)))
            }
            None => {
                let problem = Problem::new(format!("provider `{provider}` has no URL"));
                Err(ConfigError::single(problem.hint(format!("set `providers.{provider}.base_url`"))).into())
            }
        }
    }

    fn unknown_provider(&self, asked: &str) -> ConfigError {
        if self.values.keys().any(|path| path.len() == 3 && path.starts_with(&["providers".to_owned(), asked.to_owned()])) {
            let problem = Problem::new(format!("provider `{asked}` has no `api`"));
            return ConfigError::single(problem.hint(format!("set `providers.{asked}.api`")));
        }
        let known: Vec<&str> = BUILT_IN.iter().map(|known| known.name).collect();
        let nearest = known.iter().find(|name| strsim::damerau_levenshtein(name, asked) <= 2);
        let hint = nearest.map_or_else(
            || format!("use {}, or add `[providers.{asked}]` to config.toml", known.join(", ")),
            |name| format!("did you mean `{name}`?"),
        );
        ConfigError::single(Problem::new(format!("unknown provider `{asked}`")).hint(hint))
    }

    /// Returns the ports on which to look for local model servers.
    pub(crate) fn local_ports(&self) -> Vec<u16> {
        let parse = |port: &str| port.trim().parse().ok();
        if let Some(ConfigValue::List(ports)) = self.entry(&LOCAL_PORTS).map(|entry| &entry.value) {
            return ports.iter().filter_map(|port| parse(port)).collect();
        }
        let default = schema::find(&LOCAL_PORTS.map(str::to_owned)).map_or("", |key| key.default);
        default.trim_matches(['[', ']']).split(',').filter_map(parse).collect()
    }

    /// Returns whether the settings contain the URL of the provider `local`, in which case there is no need to search
    /// for local servers.
    pub(crate) fn has_local_url(&self) -> bool {
        self.text(&["providers", "local", "base_url"]).is_some()
    }

    pub(crate) fn has_default_model(&self) -> bool {
        self.default_model_name().is_some()
    }

    /// Returns a copy of the settings without `[model] default`.
    pub(crate) fn without_default_model(&self) -> Self {
        let mut settings = self.clone();
        settings.values.remove(["model", "default"].map(str::to_owned).as_slice());
        settings
    }

    pub(crate) fn default_model_name(&self) -> Option<&str> {
        self.text(&["model", "default"])
    }

    /// Validates the provider settings without sending any requests.
    pub(super) fn check_providers(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        for (path, entry) in &self.values {
            let [table, provider, name] = path.as_slice() else { continue };
            let found: Vec<Problem> = match (table.as_str(), name.as_str(), &entry.value) {
                ("providers", "base_url", ConfigValue::Text(given)) => address::check(given).err().into_iter().collect(),
                ("providers", "api_key_command", ConfigValue::List(argv)) => key_command::check(argv).err().into_iter().collect(),
                ("providers", "headers", ConfigValue::Table(headers)) => {
                    provider_headers::check(headers, self.api_for(provider), ServiceName::for_provider(self, provider)).collect()
                }
                _ => continue,
            };
            let place = format!("{}: `{}`", entry.origin, path.join("."));
            problems.extend(found.into_iter().map(|problem| problem.with_location(&place)));
        }
        ConfigError::unless_empty(problems)
    }
}

/// Returns the provider name under which keys are saved. It is the same for `openai` and `openai-chat`, which are two
/// APIs of one provider.
fn key_provider(provider: &str) -> &str {
    if provider == CHAT { RESPONSES } else { provider }
}

const OTHERWISE: &str = "or OPENAI_BASE_URL=http://localhost:11434/v1 for a local server";

fn no_key(what: &str, variable: &str, provider: &str) -> NoModel {
    let problem = Problem::new(what).hint(format!("run `aye auth login {provider}`, or set {variable}, {OTHERWISE}"));
    NoModel::NoKey(problem.hint(WITHOUT_MODEL))
}
