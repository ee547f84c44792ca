//! Which model answers: chosen by the flag, the session or the settings, and opened at its provider; and which there are.

use super::allowed::Allowed;
use super::auth::GOES_BEFORE_LATER;
use super::cli::Nesting;
use super::layers::Policy;
use super::local::LOCAL;
use super::place::Place;
use crate::config::{Api, ConfigError, KeyPlace, ModelChoice, NoModel};
use crate::llm::local_discovery::local_servers;
use crate::llm::{self, Catalogue, ProviderSpec, Told};
use crate::ports::{BoxFuture, Model, Models};
use crate::protocol::{Failure, FailureKind, KeyText, ListedModel, ModelFacts};
use crate::store::SessionSummary;
use crate::sys::http::Timeouts;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The provider name of the recorded model.
pub const DEMO: &str = "demo";

/// The person's own list of models is small; what is larger is something else.
const FILE_BYTES: u64 = 1 << 20;
/// Nobody waits longer for one provider's list.
const ASKING: Duration = Duration::from_secs(5);
/// Who says that a model is there.
const CATALOGUE: &str = "catalogue";
const CONFIG: &str = "config.toml";

/// The models a person can ask from here.
#[derive(Clone)]
pub struct ModelsHere {
    place: Arc<Place>,
    /// Rung when a key is known that was not.
    new_key: Arc<Notify>,
    catalogue: Result<Catalogue, ConfigError>,
    /// What the policy says of models.
    allowed: Allowed,
    /// Providers whose key the person gave since the start: it goes before one of the environment, which may be the one refused.
    given: Arc<Mutex<BTreeMap<String, KeyText>>>,
}

impl ModelsHere {
    /// Reads the person's own list of models, where there is one; the built-in one is read when it is needed.
    pub fn new(place: &Place) -> Self {
        Self {
            place: Arc::new(place.clone()),
            new_key: Arc::default(),
            given: Arc::default(),
            allowed: Allowed::default(),
            catalogue: catalogue(&place.directories.config.join("models.toml")),
        }
    }

    /// Rings this when a key is known that was not: it is to be hidden from now on.
    pub fn telling(self, new_key: Arc<Notify>) -> Self {
        Self { new_key, ..self }
    }

    /// Where nobody chooses a model, one that this policy allows is used.
    pub fn under(self, policy: &Policy) -> Self {
        Self { allowed: Allowed::by(policy), ..self }
    }

    pub fn catalogue(&self) -> Result<Catalogue, ConfigError> {
        self.catalogue.clone()
    }

    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// `[model] default`.
    pub fn default_model(&self) -> Option<&str> {
        self.place.settings.default_model_name()
    }

    /// A model by its name, or what the settings and the keys say where none is named.
    pub fn choice(&self, name: Option<&str>) -> Result<ModelChoice, NoModel> {
        self.place.settings.choose_model(name, &self.place.environment, &self.place.credentials)
    }

    pub fn providers(&self) -> Vec<String> {
        self.place.settings.providers()
    }

    /// The models of a provider: those of the settings, those of the catalogue, then its default.
    pub fn listed_of(&self, provider: &str, catalogue: &Catalogue) -> Vec<String> {
        let settings = &self.place.settings;
        let own = settings.models_of(provider).iter().map(|model| format!("{provider}/{model}"));
        let listed = catalogue.of_provider(provider).into_iter().map(|facts| facts.name);
        let default = settings.default_of(provider).map(|model| format!("{provider}/{model}"));
        own.chain(listed).chain(default).collect()
    }

    /// Without `[model] default`, where the policy forbids that one.
    pub fn without_forbidden_default(&self) -> Option<Arc<dyn Model>> {
        let mut here = self.clone();
        here.place = Arc::new(here.place.without_default_model());
        here.choose(None, None).ok()
    }

    /// The same with the settings as they are now: a provider may be new there. Keys are still known to all who share them.
    fn as_set_now(&self) -> Self {
        let mut here = self.clone();
        if let Ok(mut now) = self.place.anew(&[]) {
            now.credentials = self.place.credentials.clone();
            here.place = Arc::new(now);
        }
        here
    }

    /// Does something that may find a key that was kept meanwhile.
    fn with_new_keys<T>(&self, work: impl FnOnce() -> T) -> T {
        let credentials = &self.place.credentials;
        let before = credentials.known_values();
        credentials.look_again();
        let done = work();
        if credentials.known_values() != before {
            self.new_key.notify_one();
        }
        done
    }

    /// What is wrong with the person's own list of models.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.catalogue.clone().map(drop)
    }

    /// The model to ask: the flag's, the resumed session's, or the one that is set.
    pub fn choose(&self, flag: Option<&str>, resumed: Option<&SessionSummary>) -> Result<Arc<dyn Model>, NoModel> {
        // A session that never had a model says nothing.
        let asked = flag.or(resumed.map(|summary| summary.model.as_str()).filter(|model| !model.is_empty()));
        if asked.and_then(llm::split_name).is_some_and(|(provider, _)| provider == DEMO) {
            let demo = llm::demo::Demo::new(llm::demo::Pace::Recorded);
            return demo
                .map(|demo| Arc::new(demo) as Arc<dyn Model>)
                .map_err(|failure| NoModel::NoKey { message: failure.message });
        }
        let catalogue = self.catalogue.clone()?;
        let choice = self.would_use(asked)?;
        let model = choice.model.clone();
        let spec = self.spec(choice)?;
        let connected = if spec.name == LOCAL && !self.place.settings.says_where_local_is() {
            llm::connect_local(spec, &model, self.place.settings.local_ports(), &catalogue)
        } else {
            llm::connect_knowing(spec, &model, &catalogue)
        };
        connected.map_err(|failure| NoModel::NoKey { message: format!("{}; {}", failure.message, failure.hint) })
    }

    /// The server of a model, and how it is spoken to.
    fn spec(&self, choice: ModelChoice) -> Result<ProviderSpec, ConfigError> {
        let api = match choice.api {
            Api::Anthropic => llm::Api::Anthropic,
            Api::OpenAiChat => llm::Api::OpenAiChat,
            Api::OpenAiResponses => llm::Api::OpenAiResponses,
            Api::Gemini => llm::Api::Gemini,
        };
        let llm = self.place.settings.llm;
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).get(&choice.provider).cloned();
        let key = match choice.key_place {
            KeyPlace::Environment if given.is_some() => given.as_ref().map(|given| llm::Secret::new(&given.0)),
            KeyPlace::Keyring => Some(self.in_keyring(&choice.provider)),
            KeyPlace::Environment | KeyPlace::File | KeyPlace::Nowhere => choice.key.map(|key| llm::Secret::new(key.reveal())),
        };
        Ok(ProviderSpec {
            name: choice.provider,
            api,
            base_url: choice.base_url,
            key,
            // What is to be looked at where the key is refused.
            key_variable: match choice.key_place {
                KeyPlace::Keyring => "keyring".to_owned(),
                KeyPlace::File => "credentials.toml".to_owned(),
                KeyPlace::Environment if given.is_some() => "the key you entered".to_owned(),
                KeyPlace::Environment | KeyPlace::Nowhere => choice.key_variable,
            },
            timeouts: Timeouts { connect: llm.connect_timeout, idle: llm.idle_timeout },
        })
    }

    /// Asked for by the first request.
    fn in_keyring(&self, provider: &str) -> llm::Secret {
        let name = self.place.settings.key_name(provider).unwrap_or(provider).to_owned();
        let credentials = self.place.credentials.clone();
        llm::Secret::later(move || {
            let key = credentials.secret(&name)?;
            Ok(key.map(|key| key.reveal().to_owned()).unwrap_or_default())
        })
    }

    /// The server of a provider, or what it lacks to be asked.
    pub fn provider(&self, name: &str) -> Result<ProviderSpec, NoModel> {
        let model = format!("{name}/{}", self.place.settings.default_of(name).unwrap_or("default"));
        let choice = self.place.settings.choose_model(Some(&model), &self.place.environment, &self.place.credentials)?;
        Ok(self.spec(choice)?)
    }

    /// What is known without asking anybody: the one that would be asked, then those that can be, then the others.
    fn known(&self, catalogue: &Catalogue) -> Vec<ListedModel> {
        let default = self.would_use(None).ok();
        let first = default.map(|choice| {
            let source = if catalogue.lists(&choice.name()) { CATALOGUE } else { CONFIG };
            listed(catalogue.facts(&choice.name()), Lack::default(), source)
        });
        let (mut ready, mut lacking) = (Vec::from_iter(first), Vec::new());
        for provider in self.place.settings.providers() {
            let own = self.place.settings.models_of(&provider);
            // Two languages of one provider would tell the same twice.
            let twice = provider == "openai-chat" && own.is_empty();
            let lacks = match self.provider(&provider) {
                _ if twice => continue,
                Ok(_) => Lack::default(),
                Err(NoModel::NoKey { .. }) => self.lack(&provider),
                Err(error) => Lack { words: Some(error.to_string()), key_of: None },
            };
            let list = if lacks.words.is_some() { &mut lacking } else { &mut ready };
            let own = own.iter().map(|model| listed(catalogue.facts(&format!("{provider}/{model}")), lacks.clone(), CONFIG));
            let of_catalogue = catalogue.of_provider(&provider).into_iter().map(|facts| listed(facts, lacks.clone(), CATALOGUE));
            for model in own.chain(of_catalogue) {
                if !list.iter().any(|known: &ListedModel| known.facts.name == model.facts.name) {
                    list.push(model);
                }
            }
        }
        ready.extend(lacking);
        ready
    }

    fn lack(&self, provider: &str) -> Lack {
        let key = self.place.settings.key_name(provider).unwrap_or(provider);
        let variable = self.place.settings.key_variable(provider, &self.place.environment);
        let words = match &variable {
            Some(variable) => format!("set {variable} or run `aye auth login {key}`"),
            None => format!("run `aye auth login {key}`"),
        };
        Lack { words: Some(words), key_of: variable.filter(|_| provider != LOCAL).map(|_| key.to_owned()) }
    }

    /// What the servers tell that can be asked.
    async fn told(&self, catalogue: &Catalogue, models: &mut Vec<ListedModel>) -> Vec<String> {
        let mut asked = Vec::new();
        for name in self.place.settings.providers() {
            // One server is asked once, in whatever language.
            let Ok(spec) = self.provider(&name) else { continue };
            if name != LOCAL && !asked.iter().any(|(_, known): &(String, ProviderSpec)| known.base_url == spec.base_url) {
                asked.push((name, spec));
            }
        }
        let answers = asked.into_iter().map(|(name, spec)| async move {
            let address = spec.base_url.clone();
            let told = tokio::time::timeout(ASKING, llm::list_models(spec)).await;
            (name, address, told)
        });
        let ports = self.place.settings.local_ports();
        let (answers, local) = tokio::join!(join_all(answers), local_servers(&ports));
        let mut notices = Vec::new();
        for (provider, address, told) in answers {
            match told {
                Ok(Ok(told)) => add(catalogue, models, &provider, &address, told),
                Ok(Err(failure)) => notices.push(format!("{provider}: {}; {}", failure.message, failure.hint)),
                Err(_) => notices.push(format!("{provider}: `{address}` did not respond within {} s", ASKING.as_secs())),
            }
        }
        // Those that listen; that others do not is no news.
        for server in local {
            let told = server.models.into_iter().map(|model| Told {
                id: model.name,
                context_window: model.context_window,
                ..Told::default()
            });
            add(catalogue, models, LOCAL, &server.base_url, told.collect());
        }
        notices
    }
}

/// What a server tells, after what was known already of its provider.
fn add(catalogue: &Catalogue, models: &mut Vec<ListedModel>, provider: &str, address: &str, told: Vec<Told>) {
    for told in told {
        let name = format!("{provider}/{}", told.id);
        if models.iter().any(|known| known.facts.name == name) {
            continue;
        }
        let known = catalogue.facts(&name);
        let facts = if catalogue.lists(&name) { known } else { catalogue.over(told.over(known)) };
        let model = listed(facts, Lack::default(), &format!("listed by {address}"));
        let before = models.iter().rposition(|known| known.lacks.is_none());
        models.insert(before.map_or(0, |place| place + 1), model);
    }
}

/// What keeps a model from being asked.
#[derive(Debug, Clone, Default)]
struct Lack {
    words: Option<String>,
    /// Where all it lacks is a key: whose.
    key_of: Option<String>,
}

fn listed(facts: ModelFacts, lack: Lack, source: &str) -> ListedModel {
    ListedModel { facts, lacks: lack.words, key_of: lack.key_of, source: source.to_owned() }
}

/// The built-in list with the person's own on top.
fn catalogue(own: &Path) -> Result<Catalogue, ConfigError> {
    let wrong = |reason: String| ConfigError::one(format!("`{}`{reason}", own.display()));
    match own.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Catalogue::default()),
        Err(error) => return Err(wrong(format!(": {error}"))),
        Ok(metadata) if !metadata.is_file() => return Err(wrong(": not a regular file; expected a TOML file".to_owned())),
        Ok(metadata) if metadata.len() > FILE_BYTES => return Err(wrong(": larger than 1 MiB".to_owned())),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(own).and_then(|file| file.take(FILE_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| wrong(format!(": {error}")))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| wrong(": not UTF-8 text".to_owned()))?;
    Catalogue::with_own(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|problems| {
        let lines = problems.into_iter().map(|(line, what)| format!("`{}` line {line}: {what}", own.display()));
        ConfigError::one(lines.collect::<Vec<_>>().join("\n"))
    })
}

/// Asks the keyring for the key of a model, where it is kept there, so that it is known before anything is said; `None`: there is
/// nothing to ask for.
pub fn key_to_ask_for(place: &Place, model: &str) -> Option<impl FnOnce() + Send + 'static> {
    let choice = place.settings.choose_model(Some(model), &place.environment, &place.credentials).ok()?;
    let name = place.settings.key_name(&choice.provider).ok()?.to_owned();
    let credentials = place.credentials.clone();
    // What goes wrong is told by the first request.
    (choice.key_place == KeyPlace::Keyring).then_some(move || drop(credentials.secret(&name)))
}

impl Models for ModelsHere {
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let here = self.as_set_now();
        let opened = here.with_new_keys(|| {
            let opened = here.choose(Some(name), None)?;
            // So that it is hidden before anything is said with it.
            if let Some(ask) = key_to_ask_for(&here.place, name) {
                ask();
            }
            Ok(opened)
        });
        opened.map_err(|error: NoModel| {
            let kind = match error {
                NoModel::NoKey { .. } => FailureKind::Authentication,
                NoModel::Forbidden { .. } => FailureKind::Permission,
                NoModel::Wrong(_) => FailureKind::InvalidRequest,
            };
            Failure::new(kind, error.to_string(), String::new())
        })
    }

    fn keep_key(&self, name: &str, key: &KeyText) -> Result<String, Failure> {
        let wrong = |message: String| Failure::new(FailureKind::InvalidRequest, message, String::new());
        // A program that aye runs could press the keys itself.
        if Nesting::of_process() == Nesting::InsideAye {
            return Err(wrong("a command that aye runs (AYE=1) cannot change API keys".to_owned()));
        }
        let provider = llm::split_name(name).map_or(name, |(provider, _)| provider);
        let kept_as = self.place.settings.key_name(provider).map_err(|error| wrong(error.to_string()))?;
        let kept = self.with_new_keys(|| super::auth::keep(&self.place, kept_as, &key.0, GOES_BEFORE_LATER));
        let words = kept.map_err(|trouble| wrong(trouble.message))?;
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
            let mut models = here.with_new_keys(|| here.known(&catalogue));
            let notices = if ask { here.told(&catalogue, &mut models).await } else { Vec::new() };
            (models, notices)
        })
    }
}
