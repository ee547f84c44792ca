//! Selects models by flag, session or settings, connects them to their providers, and lists them.

use super::allowed_models::AllowedModels;
use super::catalogue_file;
use super::context::AppContext;
use super::key_commands;
use super::policy_layers::Policy;
use crate::config::{ApiSetting, ConfigError, KeyCommand, KeyPlace, NoModel, ProviderModel};
use crate::host::api_keys::LATER_PRECEDENCE_NOTICE;
use crate::host::cloud_accounts;
use crate::host::nesting::Nesting;
use crate::llm::local_discovery::local_servers;
use crate::llm::{self, Catalogue, ModelEntry, ProviderSpec};
use crate::ports::{BoxFuture, Model, Models};
use crate::protocol::{Failure, FailureKind, ListedModel, ModelFacts, Problem, SecretString};
use crate::store::SessionSummary;
use crate::sys::http::Timeouts;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Provider name for local models.
pub(crate) const LOCAL: &str = "local";

/// Provider name for the recorded model.
pub(crate) const DEMO: &str = "demo";

/// Maximum size of the user's model list in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// Timeout for requesting a provider's model list.
const ASKING: Duration = Duration::from_secs(5);
/// Source shown for a model from the catalogue.
const CATALOGUE: &str = "catalogue";
/// Source shown for a model from the settings.
const CONFIG: &str = "config.toml";

/// Models that are available.
#[derive(Clone)]
pub(crate) struct ModelCatalog {
    app: Arc<AppContext>,
    /// Notification that a new key has become known.
    new_key: Arc<Notify>,
    catalogue: Result<Catalogue, ConfigError>,
    /// Reason the downloaded catalogue is not used, if it is not.
    damage: Option<String>,
    /// Models that the policy allows.
    allowed: AllowedModels,
    /// Keys that the user entered while aye is running. They take precedence over keys in the environment, which may
    /// have been rejected.
    given: Arc<Mutex<BTreeMap<String, SecretString>>>,
}

impl ModelCatalog {
    /// Reads the user's model list, if there is one. The built-in list is read only when it is needed.
    pub(crate) fn new(app: &AppContext) -> Self {
        let (downloaded, damage) = match catalogue_file::read(&app.directories) {
            Ok(downloaded) => (downloaded, None),
            Err(why) => (Catalogue::default(), Some(why)),
        };
        Self {
            app: Arc::new(app.clone()),
            new_key: Arc::default(),
            given: Arc::default(),
            allowed: AllowedModels::default(),
            catalogue: with_user_list(downloaded, &app.directories.config.join("models.toml"))
                .map(|catalogue| catalogue.with_deployments(app.settings.deployments())),
            damage,
        }
    }

    /// Sets the notification for new keys, which must be redacted as soon as they are known.
    pub(crate) fn with_key_notification(self, new_key: Arc<Notify>) -> Self {
        Self { new_key, ..self }
    }

    /// Restricts the default model to models that the policy allows.
    pub(crate) fn with_policy(self, policy: &Policy) -> Self {
        Self { allowed: AllowedModels::from_policy(policy), ..self }
    }

    pub(crate) fn catalogue(&self) -> Result<Catalogue, ConfigError> {
        self.catalogue.clone()
    }

    pub(crate) fn allowed_models(&self) -> &AllowedModels {
        &self.allowed
    }

    /// Returns the model set by `[model] default`.
    pub(crate) fn default_model(&self) -> Option<&str> {
        self.app.settings.default_model_name()
    }

    /// Returns the model that writes summaries, and the configuration key that specifies it.
    pub(crate) fn summary_model(&self) -> Option<(&'static str, &str)> {
        self.app.settings.summary_model()
    }

    /// Returns the model with this name or, if `name` is `None`, the default model determined by settings and keys.
    pub(crate) fn choice(&self, name: Option<&str>) -> Result<ProviderModel, NoModel> {
        self.app.settings.choose_model(name, &self.app.environment, &self.app.credentials)
    }

    pub(crate) fn providers(&self) -> Vec<String> {
        self.app.settings.providers()
    }

    /// Returns a provider's default model, and its models from the settings and the catalogue.
    pub(crate) fn provider_models(&self, provider: &str, catalogue: &Catalogue) -> Vec<String> {
        let settings = &self.app.settings;
        let own = settings.provider_models(provider).iter().map(|model| format!("{provider}/{model}"));
        let listed = catalogue.models_of_provider(provider).into_iter().map(|facts| facts.name);
        let default = settings.provider_default_model(provider).map(|model| format!("{provider}/{model}"));
        own.chain(listed).chain(default).collect()
    }

    /// Returns the model that would be used without `[model] default`, for a policy that forbids the default model.
    pub(crate) fn without_forbidden_default(&self) -> Option<Arc<dyn Model>> {
        let mut here = self.clone();
        here.app = Arc::new(here.app.without_default_model());
        here.choose(None, None).ok()
    }

    /// Returns a copy that uses the current settings, which may include a new provider. Keys remain shared.
    fn as_set_now(&self) -> Self {
        let mut here = self.clone();
        if let Ok(mut now) = self.app.reload(&[]) {
            now.credentials = self.app.credentials.clone();
            here.app = Arc::new(now);
        }
        here
    }

    /// Runs work that may need a newly saved key, after reloading the saved keys. Sends the notification if new keys
    /// have become known.
    fn with_new_keys<T>(&self, work: impl FnOnce() -> T) -> T {
        let credentials = &self.app.credentials;
        let before = credentials.known_values();
        credentials.reload();
        let done = work();
        if credentials.known_values() != before {
            self.new_key.notify_one();
        }
        done
    }

    /// Returns the model to use, as determined by the flag, the resumed session or the settings, in this order.
    pub(crate) fn choose(&self, flag: Option<&str>, resumed: Option<&SessionSummary>) -> Result<Arc<dyn Model>, NoModel> {
        // A session that never had a model has no preference.
        let asked = flag.or(resumed.map(|summary| summary.model.as_str()).filter(|model| !model.is_empty()));
        if asked.and_then(llm::split_name).is_some_and(|(provider, _)| provider == DEMO) {
            let demo = llm::demo::Demo::new(llm::demo::Pace::Recorded);
            return demo.map(|demo| Arc::new(demo) as Arc<dyn Model>).map_err(|failure| NoModel::NoKey(failure.problem()));
        }
        let catalogue = self.catalogue.clone()?;
        let choice = self.would_use(asked)?;
        let model = choice.model.clone();
        let spec = self.spec(choice)?;
        let connected = if spec.name == LOCAL && !self.app.settings.has_local_url() {
            llm::connect_local(spec, &model, self.app.settings.local_ports(), &catalogue)
        } else {
            llm::connect_with_catalogue(spec, &model, &catalogue)
        };
        connected.map_err(|failure| NoModel::NoKey(failure.problem()))
    }

    /// Returns how to connect to a model's provider.
    fn spec(&self, choice: ProviderModel) -> Result<ProviderSpec, NoModel> {
        let access = cloud_accounts::access(&self.app, &choice)?;
        let api = match choice.api {
            ApiSetting::Anthropic => llm::Api::Anthropic,
            ApiSetting::OpenAiChat => llm::Api::OpenAiChat,
            ApiSetting::OpenAiResponses => llm::Api::OpenAiResponses,
            ApiSetting::Gemini => llm::Api::Gemini,
        };
        let llm = self.app.settings.llm;
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).get(&choice.provider).cloned();
        let key = match choice.key_place {
            KeyPlace::Environment | KeyPlace::Command if given.is_some() => {
                given.as_ref().map(|given| llm::Secret::new(&given.0))
            }
            KeyPlace::Keyring => Some(self.keyring_secret(&choice.provider)),
            KeyPlace::Command => choice.key_command.map(|setting| self.program_secret(&choice.provider, setting)),
            KeyPlace::Environment | KeyPlace::File | KeyPlace::Account | KeyPlace::Nowhere => {
                choice.key.map(|key| llm::Secret::new(key.reveal()))
            }
        };
        Ok(ProviderSpec {
            name: choice.provider,
            api,
            base_url: access.base_url,
            key,
            // Source of the key, shown if the key is rejected.
            key_variable: match choice.key_place {
                KeyPlace::Environment | KeyPlace::Command if given.is_some() => "the key you entered".to_owned(),
                KeyPlace::Keyring => "keyring".to_owned(),
                KeyPlace::Command => "api_key_command".to_owned(),
                KeyPlace::Account => "the account of the cloud platform".to_owned(),
                KeyPlace::File => "credentials.toml".to_owned(),
                KeyPlace::Environment | KeyPlace::Nowhere => choice.key_variable,
            },
            headers: llm::ExtraHeaders(choice.headers.0),
            service: access.service,
            account: access.account,
            timeouts: Timeouts { connect: llm.connect_timeout, idle: llm.idle_timeout },
        })
    }

    /// Returns a key that is read from the keyring when the first request is sent.
    fn keyring_secret(&self, provider: &str) -> llm::Secret {
        let name = self.app.settings.key_name(provider).unwrap_or(provider).to_owned();
        let credentials = self.app.credentials.clone();
        llm::Secret::later(move || {
            let key = credentials.secret(&name)?;
            Ok(key.map(|key| key.reveal().to_owned()).unwrap_or_default())
        })
    }

    /// Returns a key that is obtained by running a program before the first request.
    fn program_secret(&self, provider: &str, setting: KeyCommand) -> llm::Secret {
        let (app, provider) = (Arc::clone(&self.app), provider.to_owned());
        llm::Secret::renewable(move |rejected| {
            let printed = key_commands::provider_key(&app, &provider, &setting, rejected);
            printed.map(|key| key.reveal().to_owned()).map_err(|problem| key_commands::failure(&problem))
        })
    }

    /// Returns how to connect to a provider, or the reason why it cannot be used.
    pub(crate) fn provider(&self, name: &str) -> Result<ProviderSpec, NoModel> {
        let model = format!("{name}/{}", self.app.settings.provider_default_model(name).unwrap_or("default"));
        let choice = self.app.settings.choose_model(Some(&model), &self.app.environment, &self.app.credentials)?;
        self.spec(choice)
    }

    /// Returns the models that are known without sending requests: first the default model, then other usable models,
    /// and finally all remaining ones.
    fn known_models(&self, catalogue: &Catalogue) -> Vec<ListedModel> {
        let default = self.would_use(None).ok();
        let first = default.map(|choice| {
            let source = if catalogue.lists(&choice.name()) { CATALOGUE } else { CONFIG };
            to_listed_model(catalogue.facts(&choice.name()), MissingRequirement::default(), source)
        });
        let (mut ready, mut lacking) = (Vec::from_iter(first), Vec::new());
        for provider in self.app.settings.providers() {
            let own = self.app.settings.provider_models(&provider);
            // A second API of the same provider would list the same models.
            let twice = provider == "openai-chat" && own.is_empty();
            let lacks = match self.provider(&provider) {
                _ if twice => continue,
                Ok(_) => MissingRequirement::default(),
                Err(NoModel::NoKey(_)) => self.lack(&provider),
                Err(error) => MissingRequirement { words: Some(error.to_string()), key_of: None },
            };
            let list = if lacks.words.is_some() { &mut lacking } else { &mut ready };
            let own =
                own.iter().map(|model| to_listed_model(catalogue.facts(&format!("{provider}/{model}")), lacks.clone(), CONFIG));
            let of_catalogue =
                catalogue.models_of_provider(&provider).into_iter().map(|facts| to_listed_model(facts, lacks.clone(), CATALOGUE));
            for model in own.chain(of_catalogue) {
                if !list.iter().any(|known: &ListedModel| known.facts.name == model.facts.name) {
                    list.push(model);
                }
            }
        }
        ready.extend(lacking);
        ready
    }

    fn lack(&self, provider: &str) -> MissingRequirement {
        let key = self.app.settings.key_name(provider).unwrap_or(provider);
        let variable = self.app.settings.key_variable(provider, &self.app.environment);
        let words = match &variable {
            Some(variable) => format!("set {variable} or run `aye auth login {key}`"),
            None => format!("run `aye auth login {key}`"),
        };
        MissingRequirement { words: Some(words), key_of: variable.filter(|_| provider != LOCAL).map(|_| key.to_owned()) }
    }

    /// Adds the models that the available servers list.
    async fn add_listed(&self, catalogue: &Catalogue, models: &mut Vec<ListedModel>) -> Vec<String> {
        let mut asked = Vec::new();
        for name in self.app.settings.providers() {
            // Query each server once, even if it has several APIs.
            let Ok(spec) = self.provider(&name) else { continue };
            if name != LOCAL
                && spec.service.lists_models()
                && !asked.iter().any(|(_, known): &(String, ProviderSpec)| known.base_url == spec.base_url)
            {
                asked.push((name, spec));
            }
        }
        let answers = asked.into_iter().map(|(name, spec)| async move {
            let address = spec.base_url.clone();
            let told = tokio::time::timeout(ASKING, llm::list_models(spec)).await;
            (name, address, told)
        });
        let ports = self.app.settings.local_ports();
        let (answers, local) = tokio::join!(join_all(answers), local_servers(&ports));
        let mut notices = Vec::new();
        for (provider, address, told) in answers {
            match told {
                Ok(Ok(told)) => add(catalogue, models, &provider, &address, told),
                Ok(Err(failure)) => notices.push(failure.problem().with_location(&provider).one_line()),
                Err(_) => notices.push(format!("{provider}: `{address}` did not respond within {} s", ASKING.as_secs())),
            }
        }
        // Only servers that respond are added; the others are not reported.
        for server in local {
            let told = server.models.into_iter().map(|model| ModelEntry {
                id: model.name,
                context_window: model.context_window,
                ..ModelEntry::default()
            });
            add(catalogue, models, LOCAL, &server.base_url, told.collect());
        }
        notices
    }
}

/// Adds the models of a server after the known models of the same provider.
fn add(catalogue: &Catalogue, models: &mut Vec<ListedModel>, provider: &str, address: &str, told: Vec<ModelEntry>) {
    for told in told {
        let name = format!("{provider}/{}", told.id);
        if models.iter().any(|known| known.facts.name == name) {
            continue;
        }
        let known = catalogue.facts(&name);
        let facts = if catalogue.lists(&name) { known } else { catalogue.apply_user_entry(told.apply_to(known)) };
        let model = to_listed_model(facts, MissingRequirement::default(), &format!("listed by {address}"));
        let before = models.iter().rposition(|known| known.lacks.is_none());
        models.insert(before.map_or(0, |at| at + 1), model);
    }
}

impl ModelCatalog {
    /// Returns the model that would be used in a run with this flag.
    pub(crate) fn would_use(&self, flag: Option<&str>) -> Result<ProviderModel, NoModel> {
        match flag {
            Some(_) => self.choice(flag),
            None => self.usable_model(&self.catalogue()?),
        }
    }

    /// Returns the model to use if it is set neither by a flag nor by a session. This is `[model] default`, if it is
    /// set. Otherwise, it is the first usable model that matches `allowed_models` or, if the policy allows every model,
    /// the model of the first provider that has a key.
    fn usable_model(&self, catalogue: &Catalogue) -> Result<ProviderModel, NoModel> {
        let by_keys = || self.choice(None);
        if let Some(default) = self.default_model() {
            return match self.allowed_models().forbidding_rule(default) {
                None => by_keys(),
                Some(rule) => Err(NoModel::Forbidden(forbidden_default(default, &rule))),
            };
        }
        let Some(patterns) = self.allowed_models().patterns() else { return by_keys() };
        if patterns.is_empty() {
            let problem = Problem::new("the policy allows no model (`allowed_models` is empty)");
            return Err(NoModel::Forbidden(
                problem.hint("add a model to `allowed_models`, or remove the key to allow every model"),
            ));
        }
        let mut lacks = None;
        for name in patterns.iter().flat_map(|pattern| self.models_matching(pattern, catalogue)) {
            if self.allowed_models().forbidding_rule(&name).is_some() {
                continue;
            }
            match self.choice(Some(&name)) {
                Ok(choice) => return Ok(choice),
                Err(error) => lacks = lacks.or(Some(error)),
            }
        }
        let listed = quoted(&patterns);
        Err(match lacks {
            Some(lacks) => NoModel::NoKey(
                lacks
                    .into_problem()
                    .with_location(format!("the policy allows only {listed} (`allowed_models`), and none of these is usable")),
            ),
            None => NoModel::Forbidden(
                Problem::new(format!("the policy allows only {listed} (`allowed_models`), and no known model matches"))
                    .hint("change `allowed_models`, or run `aye models` to list the models"),
            ),
        })
    }

    /// Returns the model with a name or of a family, such as `opus`, of the provider of another model. Returns `None` if
    /// the provider has no such model, or if the policy does not allow it.
    pub(crate) fn in_provider_of(&self, other: &str, name: &str) -> Option<String> {
        let (provider, _) = llm::split_name(other)?;
        let mut known = self.provider_models(provider, &self.catalogue().ok()?);
        known.retain(|full| self.allowed_models().forbidding_rule(full).is_none());
        let is_it = |full: &&String| llm::split_name(full).is_some_and(|(_, bare)| bare.eq_ignore_ascii_case(name));
        let newest = || llm::newest_of_family(known.iter().map(String::as_str), name).first().map(|full| (*full).to_owned());
        known.iter().find(is_it).cloned().or_else(newest)
    }

    /// Completes a name without a provider, if only one provider has a model of that name, or only one with a key.
    fn full_name(&self, name: &str) -> Result<String, NoModel> {
        if name.contains('/') {
            return Ok(name.to_owned());
        }
        let known = self.known_models(&self.catalogue()?);
        let bare = |model: &ListedModel| llm::split_name(&model.facts.name).map(|(_, bare)| bare.to_ascii_lowercase());
        let asked = name.to_ascii_lowercase();
        let mut same: Vec<&ListedModel> = known.iter().filter(|model| bare(model).as_ref() == Some(&asked)).collect();
        // If the policy allows none of them, the caller reports that.
        let is_allowed = |model: &&ListedModel| self.allowed_models().forbidding_rule(&model.facts.name).is_none();
        if same.iter().any(is_allowed) {
            same.retain(is_allowed);
        }
        let usable: Vec<&ListedModel> = same.iter().copied().filter(|model| model.lacks.is_none()).collect();
        match (same.as_slice(), usable.as_slice()) {
            ([one], _) | (_, [one]) => Ok(one.facts.name.clone()),
            ([], _) => self.newest_of_family(name, &known),
            (several, _) => {
                let names: Vec<&str> = several.iter().map(|model| model.facts.name.as_str()).collect();
                Err(several_providers(name, &names))
            }
        }
    }

    /// Completes the name of a family, such as `opus`, with the newest model of a provider, as `full_name` does.
    fn newest_of_family<'a>(&self, family: &str, known: &'a [ListedModel]) -> Result<String, NoModel> {
        let is_allowed = |model: &&ListedModel| self.allowed_models().forbidding_rule(&model.facts.name).is_none();
        let allowed: Vec<&ListedModel> = known.iter().filter(is_allowed).collect();
        let name = |model: &&'a ListedModel| model.facts.name.as_str();
        let listed = llm::newest_of_family(allowed.iter().map(name), family);
        let usable = llm::newest_of_family(allowed.iter().filter(|model| model.lacks.is_none()).map(name), family);
        match (listed.as_slice(), usable.as_slice()) {
            ([one], _) | (_, [one]) => Ok((*one).to_owned()),
            ([], _) => {
                let problem = Problem::new(format!("invalid model `{family}`: must be PROVIDER/NAME"));
                let near = llm::similar_name(known.iter().map(|model| model.facts.name.as_str()), family);
                Err(NoModel::Wrong(ConfigError::single(match near {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None => problem.hint("run `/model` to list the models"),
                })))
            }
            (several, _) => Err(several_providers(family, several)),
        }
    }

    /// Returns the models that match an entry in `allowed_models`. An entry without wildcards is returned as it is; a
    /// pattern matches the listed models of each provider.
    fn models_matching(&self, pattern: &str, catalogue: &Catalogue) -> Vec<String> {
        if !pattern.contains(['*', '?']) {
            return vec![pattern.to_owned()];
        }
        let matches = |name: &String| crate::policy::matches_model(pattern, name);
        self.providers().into_iter().flat_map(|provider| self.provider_models(&provider, catalogue)).filter(matches).collect()
    }
}

fn forbidden_default(default: &str, rule: &str) -> Problem {
    let what = "the policy does not allow the model";
    Problem::new(format!("{what} `{default}`, which `[model] default` in config.toml names (rule: {rule})"))
        .hint("choose another one with `-m PROVIDER/NAME`")
        .hint("change `[model] default`, or add the model to `allowed_models`")
}

fn several_providers(name: &str, models: &[&str]) -> NoModel {
    let problem = Problem::new(format!("several providers have a model `{name}`"));
    NoModel::Wrong(ConfigError::single(problem.hint(format!("use one of {}", quoted(models)))))
}

fn quoted(patterns: &[&str]) -> String {
    patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(", ")
}

/// Reason a model cannot be used.
#[derive(Debug, Clone, Default)]
struct MissingRequirement {
    words: Option<String>,
    /// Name of the API key, if nothing else is missing.
    key_of: Option<String>,
}

fn to_listed_model(facts: ModelFacts, lack: MissingRequirement, source: &str) -> ListedModel {
    ListedModel { facts, lacks: lack.words, key_of: lack.key_of, source: source.to_owned(), ..ListedModel::default() }
}

/// Returns the catalogue after adding the models in the user's list.
fn with_user_list(catalogue: Catalogue, own: &Path) -> Result<Catalogue, ConfigError> {
    let wrong =
        |reason: &dyn std::fmt::Display| ConfigError::single(Problem::new(format!("`{}`", own.display())).because(reason));
    match own.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(catalogue),
        Err(error) => return Err(wrong(&error)),
        Ok(metadata) if !metadata.is_file() => return Err(wrong(&"not a regular file; expected a TOML file")),
        Ok(metadata) if metadata.len() > FILE_BYTES => return Err(wrong(&"larger than 1 MiB")),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(own).and_then(|file| file.take(FILE_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| wrong(&error))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| wrong(&"not UTF-8 text"))?;
    catalogue.with_user_list(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|problems| {
        let problem = |(line, what)| Problem::new(format!("`{}` line {line}", own.display())).because(what);
        ConfigError::multiple(problems.into_iter().map(problem).collect())
    })
}

/// Returns a function that reads a model's key from the keyring or from a program, so the key is known before anything
/// is printed. Returns `None` if the key comes from somewhere else.
pub(crate) fn key_reader(app: &AppContext, model: &str) -> Option<impl FnOnce() + Send + 'static> {
    let choice = app.settings.choose_model(Some(model), &app.environment, &app.credentials).ok()?;
    let name = app.settings.key_name(&choice.provider).ok()?.to_owned();
    let credentials = app.credentials.clone();
    let app = app.clone();
    let is_to_be_read = matches!(choice.key_place, KeyPlace::Keyring | KeyPlace::Command);
    // The first request reports errors.
    is_to_be_read.then_some(move || match choice.key_command.filter(|_| choice.key_place == KeyPlace::Command) {
        Some(setting) => drop(key_commands::provider_key(&app, &choice.provider, &setting, None)),
        None => drop(credentials.secret(&name)),
    })
}

impl Models for ModelCatalog {
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let here = self.as_set_now();
        let opened = here.with_new_keys(|| {
            let name = here.full_name(name)?;
            let opened = here.choose(Some(&name), None)?;
            // Read the key now, so that it is redacted from the start.
            if let Some(ask) = key_reader(&here.app, &name) {
                ask();
            }
            Ok(opened)
        });
        opened.map_err(|error: NoModel| {
            let kind = match error {
                NoModel::NoKey(_) => FailureKind::Authentication,
                NoModel::Forbidden(_) => FailureKind::Permission,
                NoModel::Wrong(_) => FailureKind::InvalidRequest,
            };
            Failure::from_problem(kind, &error.into_problem())
        })
    }

    fn keep_key(&self, name: &str, key: &SecretString) -> Result<String, Failure> {
        let wrong = |problem: &Problem| Failure::from_problem(FailureKind::InvalidRequest, problem);
        // A command that aye runs could imitate the user's keystrokes.
        if Nesting::detect() == Nesting::InsideAye {
            return Err(wrong(&"a command that aye runs (AYE=1) cannot change API keys".into()));
        }
        let provider = llm::split_name(name).map_or(name, |(provider, _)| provider);
        let kept_as = self.app.settings.key_name(provider).map_err(|error| wrong(&error.to_string().into()))?;
        let kept = self.with_new_keys(|| crate::host::api_keys::keep(&self.app, kept_as, &key.0, LATER_PRECEDENCE_NOTICE));
        let words = kept.map_err(|error| wrong(&error.into_problem()))?;
        self.given.lock().unwrap_or_else(PoisonError::into_inner).insert(provider.to_owned(), key.clone());
        Ok(words.trim_end().to_owned())
    }

    fn list(&self, ask: bool) -> BoxFuture<'static, (Vec<ListedModel>, Vec<String>)> {
        let here = self.as_set_now();
        Box::pin(async move {
            let catalogue = match &here.catalogue {
                Ok(catalogue) => catalogue.clone(),
                Err(error) => return (Vec::new(), vec![error.to_string()]),
            };
            let mut models = here.with_new_keys(|| here.known_models(&catalogue));
            let mut notices: Vec<String> = here.damage.iter().cloned().collect();
            if ask {
                notices.extend(here.add_listed(&catalogue, &mut models).await);
            }
            for model in models.iter_mut().filter(|model| model.source == CATALOGUE) {
                let provenance = catalogue.provenance(&model.facts.name);
                model.documentation = provenance.documentation;
                model.verified = provenance.verified.map(|date| date.to_string());
            }
            (models, notices)
        })
    }
}
