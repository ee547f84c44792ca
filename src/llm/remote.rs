//! Requests to a provider, from serializing the thread to receiving the last delta.

use super::catalogue::Catalogue;
use super::connection::{ERROR_TYPE, ProviderConnection};
use super::error::{self, ErrorContext};
use super::model_list::{ModelEntry, ModelPages};
use super::quirks::{self, Quirks};
use super::sse::Events;
use super::stream_reader::{Listener, ResponseAssembler};
use super::thread::ThreadCache;
use super::web_search::{ProviderSearch, RESPONSE_BYTES, SearchConnection};
use super::{Api, ProviderSpec, Service, anthropic, chat, gemini, responses};
use crate::ports::{BoxFuture, Delta, Model, ModelError, ModelRequest, ModelStream, SearchEngine};
use crate::protocol::{Failure, FailureKind, ModelFacts, Remedy};
use crate::sys::http::{Headers, Reply};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

const MAX_ERROR_BYTES: usize = 64 << 10;

/// Model that is accessed over HTTP.
pub(super) struct Remote {
    name: String,
    catalogue: Catalogue,
    /// Facts about the model from the catalogue.
    known: OnceLock<ModelFacts>,
    inner: Arc<Inner>,
}

/// State that a model shares with all of its responses.
struct Inner {
    api: Api,
    /// Whether the address is the one that belongs to the API's own provider.
    at_home: bool,
    service: Service,
    connection: ProviderConnection,
    model: String,
    thread: Mutex<ThreadCache>,
    quirks: Mutex<Quirks>,
    /// Whether the server has been asked for facts about the model.
    asked: AtomicBool,
    /// Facts about the model that the server reported.
    told: OnceLock<ModelFacts>,
    lacks: responses::MissingFeatures,
}

impl Remote {
    pub(crate) fn new(spec: ProviderSpec, model: &str, catalogue: Catalogue) -> Result<Self, Failure> {
        if model.trim().is_empty() {
            let message = format!("missing model name after `{}/`", spec.name);
            return Err(Failure::new(FailureKind::InvalidRequest, message, "name a model as `provider/name`"));
        }
        let connection = ProviderConnection::new(&spec, model)?;
        let at_home = spec.base_url.trim_end_matches('/') == spec.api.home();
        if connection.lacks_key() && at_home {
            let message = format!("no API key for provider `{}`", spec.name);
            let hint = format!(
                "run `aye auth login {}`, set `{}`, use a local model server, or try `aye demo`",
                spec.name, spec.key_variable
            );
            return Err(Failure::new(FailureKind::Authentication, message, hint).with_remedy(Remedy::SaveKey));
        }
        let thread = ThreadCache::for_origin(&connection.speaker().origin());
        let quirks = if at_home && spec.api == Api::Anthropic { Quirks::anthropic() } else { Quirks::default() };
        let inner = Inner {
            api: spec.api,
            at_home,
            service: spec.service,
            connection,
            model: model.to_owned(),
            thread: Mutex::new(thread),
            quirks: Mutex::new(quirks),
            asked: AtomicBool::new(false),
            told: OnceLock::new(),
            lacks: responses::MissingFeatures::default(),
        };
        Ok(Self { name: format!("{}/{model}", spec.name), catalogue, known: OnceLock::new(), inner: Arc::new(inner) })
    }

    fn known_facts(&self) -> &ModelFacts {
        self.inner.told.get().unwrap_or_else(|| self.known.get_or_init(|| self.catalogue.facts(&self.name)))
    }
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&self) -> ModelFacts {
        self.known_facts().clone()
    }

    fn query_facts(&self) -> BoxFuture<'static, Option<ModelFacts>> {
        if !self.inner.service.lists_models()
            || self.catalogue.lists(&self.name)
            || self.inner.asked.swap(true, Ordering::Relaxed)
        {
            return Box::pin(std::future::ready(None));
        }
        let (inner, known, own) = (Arc::clone(&self.inner), self.facts(), self.catalogue.clone());
        Box::pin(async move {
            let listed = ModelPages::new(inner.api, &inner.connection).fetch_all().await;
            let listed = match listed {
                Ok(listed) => listed,
                Err(failure) => {
                    tracing::debug!(
                        provider = inner.connection.speaker().provider,
                        message = failure.message,
                        "cannot list the models"
                    );
                    return None;
                }
            };
            let told = find_entry(&inner.model, &listed)?.apply_to(known.clone());
            // The user's own entries override the facts from a server.
            let facts = own.apply_user_entry(told);
            (facts != known).then(|| inner.told.get_or_init(|| facts).clone())
        })
    }

    fn web_search(&self) -> Option<Arc<dyn SearchEngine>> {
        // The services of cloud platforms use other paths and lack some tools of the model's vendor.
        if self.inner.service != Service::Direct {
            return None;
        }
        let search = ProviderSearch::for_connection(Arc::clone(&self.inner) as Arc<dyn SearchConnection>, self.facts())?;
        Some(Arc::new(search))
    }

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        if let Some(limit) = self.known_facts().max_output_tokens {
            request.max_output_tokens = request.max_output_tokens.min(limit);
        }
        if self.known_facts().tools == Some(false) {
            request.tools = Arc::from([]);
        }
        // Models without a configurable effort reject the field, and other models reject unsupported levels.
        request.effort = request.effort.and_then(|effort| self.known_facts().nearest_effort(effort));
        let inner = Arc::clone(&self.inner);
        let (name, catalogue) = (self.name.clone(), self.catalogue.clone());
        Box::pin(async_stream::try_stream! {
            let sent = inner.send(&request).await;
            let events = sent.map_err(|error| with_nearest(inner.connection.redact(error), &name, &catalogue))?;
            drop(request);
            let idle = inner.connection.timeouts().idle;
            let mut listener = Listener::new(inner.connection.speaker().clone(), events, inner.answer(), idle);
            while !listener.at_end() {
                let outcome = listener.listen().await;
                for delta in listener.take() {
                    yield delta;
                }
                outcome.map_err(|error| inner.connection.redact(error))?;
            }
            yield Delta::Completed(listener.finish()?);
        })
    }
}

/// Adds the most similar model name to the error for an unknown model, whose name may have been mistyped.
fn with_nearest(mut error: ModelError, name: &str, catalogue: &Catalogue) -> ModelError {
    if error.failure.kind == FailureKind::NotFound
        && !catalogue.lists(name)
        && let Some(nearest) = catalogue.nearest(name)
    {
        error.failure.hint = format!("did you mean `{nearest}`? {}", error.failure.hint);
    }
    error
}

/// Returns the entry for a model in a server's list. A server that offers only one model accepts any model name.
fn find_entry<'a>(model: &str, listed: &'a [ModelEntry]) -> Option<&'a ModelEntry> {
    let bare = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_ascii_lowercase();
    let named = listed.iter().find(|told| told.id == model).or_else(|| listed.iter().find(|told| bare(&told.id) == bare(model)));
    named.or(if let [only] = listed { Some(only) } else { None }).filter(|told| told.has_details())
}

impl Inner {
    async fn send(&self, request: &ModelRequest) -> Result<Events, ModelError> {
        let quirks = self.quirks();
        let path = self.service.path(self.api, self.connection.address(), &self.model);
        let beta = (self.api == Api::Anthropic).then(|| anthropic::beta(&self.model, request, &quirks)).flatten();
        let body = self.service.body(self.api, self.body(request, &quirks), beta.as_ref().map(|(_, value)| value.as_str()));
        let beta = beta.filter(|_| !self.service.sends_beta_in_body());
        let headers: Headers = beta.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect();
        let reply = self.connection.post(&path, &headers, body.into()).await?;
        if (200..300).contains(&reply.status()) {
            return Ok(self.service.events(reply));
        }
        let (status, mut error, body) = self.read_error(reply).await;
        match self.api {
            Api::OpenAiResponses => {
                if self.lacks.learn(status, self.speaker(), &mut error) {
                    // Cached fragments may contain parts that the server rejects.
                    self.thread().forget();
                }
            }
            Api::Anthropic | Api::OpenAiChat | Api::Gemini => self.learn(status, request, &quirks, &body, &mut error),
        }
        Err(error)
    }

    /// Sends a request that is not part of the conversation, and returns the complete response body.
    async fn request_outside_thread(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, ModelError> {
        let reply = self.connection.post(path, &Headers::new(), body.into()).await?;
        if !(200..300).contains(&reply.status()) {
            return Err(self.connection.redact(self.read_error(reply).await.1));
        }
        let body = reply.into_body(RESPONSE_BYTES).await.map_err(|error| self.speaker().transport(&error))?;
        body.ok_or_else(|| self.speaker().unexpected_body(&format!("a response of more than {} MB", RESPONSE_BYTES >> 20)))
    }

    /// Reads an unsuccessful response. Returns its status, the error that it describes, and its body.
    async fn read_error(&self, reply: Reply) -> (u16, ModelError, Vec<u8>) {
        let status = reply.status();
        let line = match reply.header("location") {
            Some(place) if (300..400).contains(&status) => {
                format!("{}, a redirect to `{place}`, which is not followed", reply.status_line())
            }
            Some(_) | None => reply.status_line(),
        };
        let asked = error::parse_headers(|name| reply.header(name), SystemTime::now());
        let code = reply.header(ERROR_TYPE).map(str::to_owned);
        let body = if (300..400).contains(&status) { Vec::new() } else { reply.into_head(MAX_ERROR_BYTES).await };
        let body = code.map_or_else(|| body.clone(), |code| with_code(&body, &code));
        let error = self.speaker().status_error(status, &line, &body, asked);
        (status, error, body)
    }

    /// Learns from an error what the next request must leave out. The retry is left to the agent, which makes it
    /// visible to the user.
    fn learn(&self, status: u16, request: &ModelRequest, quirks: &Quirks, body: &[u8], error: &mut ModelError) {
        let of_request =
            matches!(error.failure.kind, FailureKind::InvalidRequest | FailureKind::NotFound | FailureKind::ContextTooLong);
        let complaint = ErrorContext::error_details(body);
        if self.api == Api::OpenAiChat && of_request && chat::requires_responses_api(&complaint) {
            // Without tools, the agent could do nothing.
            error.failure.retryable = false;
            error.failure.hint = chat::responses_api_hint(self.speaker());
            return;
        }
        let of_template = complaint.to_lowercase().contains(quirks::ROLES_MUST_ALTERNATE);
        if !(of_request || of_template) || (300..400).contains(&status) {
            return;
        }
        let asked = request.max_output_tokens.min(quirks.most_output.unwrap_or(u64::MAX));
        let learnt = self.quirks.lock().unwrap_or_else(PoisonError::into_inner).learn(&complaint, asked);
        if let Some(otherwise) = learnt {
            error.failure.message = format!("{} (retried {otherwise})", error.failure.message);
            error.failure.retryable = true;
        }
    }

    fn speaker(&self) -> &ErrorContext {
        self.connection.speaker()
    }

    fn quirks(&self) -> Quirks {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn thread(&self) -> MutexGuard<'_, ThreadCache> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn body(&self, request: &ModelRequest, quirks: &Quirks) -> Vec<u8> {
        let mut thread = self.thread();
        match self.api {
            Api::Anthropic => anthropic::body(&self.model, request, quirks, &mut thread),
            Api::OpenAiChat => chat::body(&self.model, &self.speaker().base_url, request, quirks, &mut thread),
            Api::Gemini => gemini::body(&self.model, request, quirks, &mut thread),
            Api::OpenAiResponses => responses::body(&self.model, &self.lacks, request, &mut thread),
        }
    }

    fn answer(&self) -> Box<dyn ResponseAssembler> {
        answer(self.api, self.speaker().clone())
    }
}

impl SearchConnection for Inner {
    fn api(&self) -> Api {
        self.api
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn address(&self) -> &str {
        self.connection.address()
    }

    fn host(&self) -> &str {
        self.connection.host()
    }

    fn provider(&self) -> &str {
        &self.speaker().provider
    }

    fn is_at_home(&self) -> bool {
        self.at_home
    }

    fn post(&self, path: String, body: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, ModelError>> {
        Box::pin(async move { self.request_outside_thread(&path, body).await })
    }
}

/// Adds an error code found in a header to the body of the error.
fn with_code(body: &[u8], code: &str) -> Vec<u8> {
    let mut body: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).unwrap_or_default();
    // A URL may follow the code after a colon.
    let code = code.split(':').next().unwrap_or_default();
    body.entry("__type").or_insert_with(|| code.into());
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Creates the assembler for an API's responses.
pub(super) fn answer(api: Api, speaker: ErrorContext) -> Box<dyn ResponseAssembler> {
    match api {
        Api::Anthropic => Box::new(anthropic::MessagesAssembler::new(speaker)),
        Api::OpenAiChat => Box::new(chat::ChatAssembler::new(speaker)),
        Api::Gemini => Box::new(gemini::GeminiAssembler::new(speaker)),
        Api::OpenAiResponses => Box::new(responses::ResponsesAssembler::new(speaker)),
    }
}
