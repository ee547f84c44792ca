//! Requests to a provider, from the thread to the last delta.

use super::auth::Key;
use super::catalogue::Catalogue;
use super::error::{self, ErrorContext};
use super::model_list::{List, ModelEntry};
use super::quirks::{self, Quirks};
use super::sse::{self, Events};
use super::stream_reader::{Answer, Listener};
use super::thread::Thread;
use super::{Api, ProviderSpec, anthropic, chat, gemini, headers_of, responses};
use crate::ports::{BoxFuture, Delta, Model, ModelError, ModelRequest, ModelStream};
use crate::protocol::{Failure, FailureKind, ModelFacts, Remedy};
use crate::sys::http::Server;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

const MAX_ERROR_BYTES: usize = 64 << 10;

/// Model accessed over HTTP.
pub(super) struct Remote {
    name: String,
    catalogue: Catalogue,
    /// Facts from the catalogue.
    known: OnceLock<ModelFacts>,
    inner: Arc<Inner>,
}

struct Inner {
    api: Api,
    server: Server,
    key: Key,
    model: String,
    speaker: ErrorContext,
    thread: Mutex<Thread>,
    quirks: Mutex<Quirks>,
    /// Whether the server was queried for facts about the model.
    asked: AtomicBool,
    /// Facts that the server reported.
    told: OnceLock<ModelFacts>,
    lacks: responses::Lacks,
}

impl Remote {
    pub(crate) fn new(spec: ProviderSpec, model: &str, catalogue: Catalogue) -> Result<Self, Failure> {
        if model.trim().is_empty() {
            let message = format!("missing model name after `{}/`", spec.name);
            return Err(Failure::new(FailureKind::InvalidRequest, message, "name a model as `provider/name`"));
        }
        let key = Key::new(spec.key, headers_of(spec.api));
        let mut speaker = ErrorContext {
            provider: spec.name.clone(),
            model: model.to_owned(),
            key_variable: spec.key_variable.clone(),
            base_url: spec.base_url.clone(),
        };
        let at_home = spec.base_url.trim_end_matches('/') == spec.api.home();
        if key.is_absent() && at_home {
            let message = format!("no API key for provider `{}`", spec.name);
            let hint = format!(
                "run `aye auth login {}`, set `{}`, use a local model server, or try `aye demo`",
                spec.name, spec.key_variable
            );
            return Err(Failure::new(FailureKind::Authentication, message, hint).with_remedy(Remedy::SaveKey));
        }
        let server = Server::new(&spec.base_url, spec.timeouts).map_err(|error| speaker.transport(&error).failure)?;
        server.address().clone_into(&mut speaker.base_url);
        let thread = Thread::told_to(&speaker.origin());
        let quirks = if at_home && spec.api == Api::Anthropic { Quirks::of_anthropic() } else { Quirks::default() };
        let inner = Inner {
            api: spec.api,
            server,
            key,
            model: model.to_owned(),
            speaker,
            thread: Mutex::new(thread),
            quirks: Mutex::new(quirks),
            asked: AtomicBool::new(false),
            told: OnceLock::new(),
            lacks: responses::Lacks::default(),
        };
        Ok(Self { name: format!("{}/{model}", spec.name), catalogue, known: OnceLock::new(), inner: Arc::new(inner) })
    }

    fn known(&self) -> &ModelFacts {
        self.inner.told.get().unwrap_or_else(|| self.known.get_or_init(|| self.catalogue.facts(&self.name)))
    }
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&self) -> ModelFacts {
        self.known().clone()
    }

    fn query_facts(&self) -> BoxFuture<'static, Option<ModelFacts>> {
        if self.catalogue.lists(&self.name) || self.inner.asked.swap(true, Ordering::Relaxed) {
            return Box::pin(std::future::ready(None));
        }
        let (inner, known, own) = (Arc::clone(&self.inner), self.facts(), self.catalogue.clone());
        Box::pin(async move {
            let listed = List::new(inner.api, &inner.server, &inner.key, &inner.speaker).all().await;
            let listed = match listed {
                Ok(listed) => listed,
                Err(failure) => {
                    tracing::debug!(provider = inner.speaker.provider, message = failure.message, "cannot list the models");
                    return None;
                }
            };
            let told = told_of(&inner.model, &listed)?.over(known.clone());
            // The user's own entries override whatever a server reports.
            let facts = own.over(told);
            (facts != known).then(|| inner.told.get_or_init(|| facts).clone())
        })
    }

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        if let Some(limit) = self.known().max_output_tokens {
            request.max_output_tokens = request.max_output_tokens.min(limit);
        }
        if self.known().tools == Some(false) {
            request.tools = Arc::from([]);
        }
        // A model without a configurable effort rejects the field, and others reject the levels that they do not have.
        request.effort = request.effort.and_then(|effort| self.known().nearest_effort(effort));
        let inner = Arc::clone(&self.inner);
        let (name, catalogue) = (self.name.clone(), self.catalogue.clone());
        Box::pin(async_stream::try_stream! {
            let sent = inner.send(&request).await;
            let events = sent.map_err(|error| with_nearest(inner.key.hidden_in(error), &name, &catalogue))?;
            drop(request);
            let mut listener = Listener::new(inner.speaker.clone(), events, inner.answer(), inner.server.timeouts().idle);
            while !listener.at_end() {
                let outcome = listener.listen().await;
                for delta in listener.take() {
                    yield delta;
                }
                outcome.map_err(|error| inner.key.hidden_in(error))?;
            }
            yield Delta::Completed(listener.finish()?);
        })
    }
}

/// Adds a suggestion to the error of an unknown model, because its name may be mistyped.
fn with_nearest(mut error: ModelError, name: &str, catalogue: &Catalogue) -> ModelError {
    if error.failure.kind == FailureKind::NotFound
        && !catalogue.lists(name)
        && let Some(nearest) = catalogue.nearest(name)
    {
        error.failure.hint = format!("did you mean `{nearest}`? {}", error.failure.hint);
    }
    error
}

/// Returns the entry of a model. A server with only one model uses it under any name.
fn told_of<'a>(model: &str, listed: &'a [ModelEntry]) -> Option<&'a ModelEntry> {
    let bare = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_ascii_lowercase();
    let named = listed.iter().find(|told| told.id == model).or_else(|| listed.iter().find(|told| bare(&told.id) == bare(model)));
    named.or(if let [only] = listed { Some(only) } else { None }).filter(|told| told.says_something())
}

impl Inner {
    async fn send(&self, request: &ModelRequest) -> Result<Events, ModelError> {
        let quirks = self.quirks();
        let body = self.body(request, &quirks);
        let path = match self.api {
            Api::Anthropic => Cow::Borrowed(anthropic::PATH),
            Api::OpenAiChat => Cow::Borrowed(chat::PATH),
            Api::OpenAiResponses => Cow::Borrowed(responses::PATH),
            Api::Gemini => Cow::Owned(gemini::path(self.server.address(), &self.model)),
        };
        let mut headers = self.key.headers(&self.speaker).await?.clone();
        if self.api == Api::Anthropic {
            headers.extend(anthropic::beta(&self.model, request, &quirks));
        }
        let sent = self.server.post(&path, &headers, body).await;
        let reply = sent.map_err(|error| self.speaker.transport(&error))?;
        let status = reply.status();
        if (200..300).contains(&status) {
            return Ok(sse::events(reply.into_stream()));
        }
        let line = match reply.header("location") {
            Some(place) if (300..400).contains(&status) => {
                format!("{}, a redirect to `{place}`, which is not followed", reply.status_line())
            }
            Some(_) | None => reply.status_line(),
        };
        let asked = error::asked(|name| reply.header(name), SystemTime::now());
        let body = if (300..400).contains(&status) { Vec::new() } else { reply.into_head(MAX_ERROR_BYTES).await };
        let mut error = self.speaker.refused(status, &line, &body, asked);
        match self.api {
            Api::OpenAiResponses => {
                if self.lacks.learn(status, &self.speaker, &mut error) {
                    // Fragments written earlier may contain what the server rejects.
                    self.thread().forget();
                }
            }
            Api::Anthropic | Api::OpenAiChat | Api::Gemini => self.learn(status, request, &quirks, &body, &mut error),
        }
        Err(error)
    }

    /// Learns from an error what to leave out of the next request. The agent sends it, so that the user sees the retry.
    fn learn(&self, status: u16, request: &ModelRequest, quirks: &Quirks, body: &[u8], error: &mut ModelError) {
        let of_request =
            matches!(error.failure.kind, FailureKind::InvalidRequest | FailureKind::NotFound | FailureKind::ContextTooLong);
        let complaint = ErrorContext::complaint(body);
        if self.api == Api::OpenAiChat && of_request && chat::wants_responses(&complaint) {
            // Without tools the agent could do nothing.
            error.failure.retryable = false;
            error.failure.hint = chat::through_responses(&self.speaker);
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

    fn quirks(&self) -> Quirks {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn thread(&self) -> MutexGuard<'_, Thread> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn body(&self, request: &ModelRequest, quirks: &Quirks) -> Vec<u8> {
        let mut thread = self.thread();
        match self.api {
            Api::Anthropic => anthropic::body(&self.model, request, quirks, &mut thread),
            Api::OpenAiChat => chat::body(&self.model, &self.speaker.base_url, request, quirks, &mut thread),
            Api::Gemini => gemini::body(&self.model, request, quirks, &mut thread),
            Api::OpenAiResponses => responses::body(&self.model, &self.lacks, request, &mut thread),
        }
    }

    fn answer(&self) -> Box<dyn Answer> {
        answer(self.api, self.speaker.clone())
    }
}

/// Returns the response reader of an API.
pub(super) fn answer(api: Api, speaker: ErrorContext) -> Box<dyn Answer> {
    match api {
        Api::Anthropic => Box::new(anthropic::Reader::new(speaker)),
        Api::OpenAiChat => Box::new(chat::Reader::new(speaker)),
        Api::Gemini => Box::new(gemini::Reader::new(speaker)),
        Api::OpenAiResponses => Box::new(responses::Reader::new(speaker)),
    }
}
