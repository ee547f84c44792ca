//! The screen and the session behind it.

use super::cli::{Color, Common, Nesting, SessionChoice, Trust as TrustFlag};
use super::exit::Exit;
use super::layers::Policy;
use super::local;
use super::models::ModelsHere;
use super::pick;
use super::place::Place;
use super::project::Brought;
use super::reload::Reload;
use super::rules::PersonsRules;
use super::session::{self, Session, Terms};
use super::standing::Standing;
use super::trouble::Trouble;
use crate::agent::{self, Approver, Unfinished};
use crate::config::NoModel;
use crate::ports::Model;
use crate::protocol::{ChangedFiles, Command, Event, EventKind, Mode};
use crate::tui::{
    self, Colours, Ended, Front, Ground, Header, KeptAs, ModelAccess, Options, Outcome, Start, ThemeChoice, Trust, TrustAnswer,
};
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long the session may take to save itself when the screen is gone.
const FAREWELL: Duration = Duration::from_secs(5);
/// Changed files that are named then; the others are counted.
const NAMED: usize = 12;

/// What the command line asks of the screen.
pub struct Request {
    pub prompt: Option<String>,
    pub session: SessionChoice,
}

pub fn run(common: &Common, request: Request) -> Result<Exit, Trouble> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(Trouble::usage("aye needs a terminal; `aye exec PROMPT` runs a task without one"));
    }
    let mut place = Place::find(common)?;
    // What is wrong with the person's own files is said before anything is made.
    let own = place.policy(common.policy.as_deref(), None)?;
    let started_in = place.workspace.clone();
    let _log = super::start_log(&place, common.verbosity);
    let runtime = super::runtime()?;
    runtime.block_on(async {
        let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
        let (events, receive_events) = mpsc::unbounded_channel();
        let (start, receive_start) = oneshot::channel();
        let store = super::open_store(&place)?;
        let choice = pick::ask(&store, &place, request.session)?;
        let chosen = session::choose(&store, &mut place, &choice)?;
        let model = ModelsHere::new(&place).choose(common.model.as_deref(), chosen.as_ref());
        let open = local::is_open(&place.settings, common.model.as_deref(), chosen.as_ref());
        if let Err(NoModel::Wrong(error)) = model {
            return Err(error.into());
        }
        let name = model.as_ref().map_or_else(|_| String::new(), |model| model.name().to_owned());
        // Who said yes on the command line hears at once what is wrong with it; else the screen is there first.
        let project = (common.trust == TrustFlag::ForThisRun).then(|| Brought::look(&place, common.trust));
        // A session brings its workspace along, and the rules that are kept for that.
        let policy = if project.is_none() && place.workspace == started_in {
            own
        } else {
            place.policy(common.policy.as_deref(), project.as_ref())?
        };
        if let Some(project) = &project {
            place.with_tools_of(project);
        }
        let mut session = session::open(store, &place, &policy, chosen, &name)?;
        // The screen hides what was said before it.
        let said = session.store.notices().to_vec();
        session.notices.splice(0..0, said);
        let front = Front {
            commands,
            events: receive_events,
            options: options(&place, &policy, common.color),
            prompt: request.prompt,
            start: receive_start,
        };
        let file = common.policy.clone();
        let rules = Arc::new(PersonsRules::new(&place, common.policy.as_deref(), &name));
        let backstage = Backstage { place, policy, project, session, model, open, rules, file, max_steps: common.max_steps };
        let session = tokio::spawn(backstage.run(start, receive_commands, events));
        let outcome = tui::run(front).await.map_err(|error| Trouble::failed(format!("the terminal failed: {error}")))?;
        // The screen's end dropped its sender of commands, so the session saves itself and ends.
        let changed = tokio::time::timeout(FAREWELL, session).await.ok().and_then(Result::ok).unwrap_or_default();
        Ok(farewell(&outcome, &changed))
    })
}

/// Says on the main screen what the other one ended with.
fn farewell(outcome: &Outcome, changed: &ChangedFiles) -> Exit {
    let mut text = String::new();
    if let Some(answer) = &outcome.last_answer {
        text.push_str(&crate::text::clean(answer.trim_end()));
        text.push('\n');
    }
    text.push_str(&changes(changed));
    if let Some(hint) = &outcome.resume_hint {
        text = format!("{text}\nTo go on: {hint}\n");
    }
    match outcome.ended {
        Ended::Closed => {}
        Ended::Quit | Ended::Signal(_) => super::say(&text),
    }
    match outcome.ended {
        Ended::Quit => Exit::Completed,
        Ended::Closed => Exit::Failed,
        Ended::Signal(signal) if signal == super::SIGINT => Exit::Interrupted,
        Ended::Signal(_) => Exit::Terminated,
    }
}

/// Which files are not what they were; the first of them by name.
fn changes(changed: &ChangedFiles) -> String {
    let Some(counts) = changed.counts() else { return String::new() };
    let mut text = format!("\nChanged: {counts}\n");
    for file in changed.files.iter().take(NAMED) {
        let name = crate::text::reveal(&file.path).replace(['\n', '\r'], " ");
        let lines = if file.added + file.removed > 0 { format!("  +{} −{}", file.added, file.removed) } else { String::new() };
        let _ = writeln!(text, "  {} {name}{lines}", file.status.letter());
    }
    let more = changed.files.len().saturating_sub(NAMED) as u64 + changed.more_files;
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

fn options(place: &Place, policy: &Policy, color: Color) -> Options {
    let rules = policy.redactions();
    let (own, redactor) = (place.clone(), OnceLock::new());
    // Made for the first prompt: the first frame does not wait for it.
    let kept_as = move |prompt: &str| {
        let redactor = redactor.get_or_init(|| super::redaction::redactor(&own, rules.clone(), &[]));
        redactor.redact(prompt).text.into_owned()
    };
    let variable = |name: &str| place.environment.get(name).unwrap_or_default();
    let colours = if color == Color::Never || !variable("NO_COLOR").is_empty() || variable("TERM") == "dumb" {
        Colours::None
    } else if matches!(variable("COLORTERM"), "truecolor" | "24bit") {
        Colours::True
    } else if variable("TERM").contains("256color") {
        Colours::Indexed256
    } else {
        Colours::Sixteen
    };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().map(variable).find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    Options {
        theme: ThemeChoice::Auto,
        ground: Ground::of_variable(variable("COLORFGBG")),
        colours,
        ascii: !(locale.contains("utf-8") || locale.contains("utf8")),
        history: Some(place.directories.data.join("history.jsonl")),
        kept_as: KeptAs(Arc::new(kept_as)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cwd: place.workspace_for_people(),
    }
}

/// What loads and runs while the screen is there already.
struct Backstage {
    place: Place,
    policy: Policy,
    session: Session,
    model: Result<Arc<dyn Model>, NoModel>,
    /// Whether it is left to aye which one.
    open: bool,
    /// As far as it was looked at before.
    project: Option<Brought>,
    /// `--policy FILE`
    file: Option<PathBuf>,
    rules: Arc<PersonsRules>,
    max_steps: Option<u32>,
}

impl Backstage {
    /// Until the session ends; what it changed.
    async fn run(
        self,
        start: oneshot::Sender<Start>,
        commands: mpsc::Receiver<Command>,
        events: mpsc::UnboundedSender<Event>,
    ) -> ChangedFiles {
        let nothing = ChangedFiles::default;
        let Self { mut place, mut policy, project, mut session, model, open, mut rules, file, max_steps } = self;
        let models = ModelsHere::new(&place);
        let settings = place.settings.clone();
        // Beside all else that is looked at: the screen is there already.
        let looking = tokio::spawn(async move { local::instead(&models, &settings, model, open).await });
        let mut notices = std::mem::take(&mut session.notices);
        let mut project = project.unwrap_or_else(|| Brought::look(&place, TrustFlag::AsRecorded));
        project.ask_again_if_broken();
        if project.is_trusted() {
            policy = with_project(&mut place, policy, &project, &session, file.as_deref(), &mut notices);
            tools_of_project(&mut place, &project, &mut notices);
        }
        let (answer, receive_answer) = oneshot::channel();
        let Ok((model, said)) = looking.await else { return nothing() };
        notices.extend(said);
        if let (true, Ok(model)) = (open, &model) {
            rules = Arc::new(PersonsRules::new(&place, file.as_deref(), model.name()));
        }
        // A program that aye runs could press the key itself.
        let asks = project.waits() && model.is_ok() && Nesting::of_process() == Nesting::Outermost;
        let history = session.history(&place);
        let (own, trusted) = (place.clone(), !project.waits());
        let Ok(mut standing) = tokio::task::spawn_blocking(move || Standing::find(&own, trusted)).await else { return nothing() };
        let (header, model_access) = head(&place, &policy, &model, &standing);
        let trust = asks.then(|| Trust {
            place: place.workspace_for_people(),
            items: project.lines(),
            files: project.files(),
            remote: project.remote(),
            changes: project.changes().map(<[String]>::to_vec),
            broken: project.broken(),
            answer,
        });
        if start.send(Start { header, history, model_access, trust }).is_err() {
            return nothing();
        }
        let Ok(model) = model else {
            wait_for_the_end(commands).await;
            return nothing();
        };
        if asks {
            match receive_answer.await {
                Ok(TrustAnswer::Yes) => {
                    if let Err(error) = project.trusted(&place) {
                        notices.push(format!("{error}; it holds for this run"));
                    }
                    policy = with_project(&mut place, policy, &project, &session, file.as_deref(), &mut notices);
                    tools_of_project(&mut place, &project, &mut notices);
                    standing.trust(&place);
                }
                Ok(TrustAnswer::ReadOnly) => place.mode = Mode::Plan,
                Ok(TrustAnswer::Quit) | Err(_) => {
                    leave(&session, &place, commands).await;
                    return nothing();
                }
            }
        }
        if let Some(ask) = super::models::key_to_ask_for(&place, model.name()) {
            let _ = tokio::task::spawn_blocking(ask).await;
        }
        let instructions = project.instructions();
        let draft = std::mem::take(&mut session.draft);
        let terms = Terms {
            approver: Approver::Person,
            unfinished: Unfinished::Wait,
            max_steps,
            // Whoever sits there takes the time they need.
            approval_timeout: None,
            instructions,
            guidance: project.guidance(),
            rules,
            standing: standing.clone(),
        };
        let mut setup = session::setup(&place, &policy, &mut session, model, terms);
        notices.append(&mut session.notices);
        let (reload, updates) = Reload::new(place, file, project, &session, &policy, standing);
        setup.policy_updates = Some(updates);
        let tell = |kind: EventKind| {
            let event = Event {
                workspace_id: setup.workspace_id.clone(),
                session_id: setup.session_id.clone(),
                task_id: None,
                step_id: None,
                timestamp: jiff::Timestamp::now(),
                kind,
            };
            let _ = events.send(event);
        };
        for message in notices {
            tell(EventKind::Notice { message });
        }
        if !draft.is_empty() {
            tell(EventKind::DraftRestored { text: draft });
        }
        let router = setup.router.clone();
        let ended: JoinHandle<()> = agent::spawn(setup, commands, events);
        tokio::spawn(reload.run());
        let _ = ended.await;
        let changed = router.changed_files(None).await;
        // The claim on the session is given back only now.
        drop(session);
        changed
    }
}

/// The tools with the project's among them; what was said of the person's own is not said again.
fn tools_of_project(place: &mut Place, project: &Brought, notices: &mut Vec<String>) {
    place.with_tools_of(project);
    let new: Vec<String> = place.tools.problems.iter().filter(|problem| !notices.contains(problem)).cloned().collect();
    notices.extend(new);
}

/// The policy with the project's in it. Where that cannot be had nothing is changed, for it might have forbidden it.
fn with_project(
    place: &mut Place,
    own: Policy,
    project: &Brought,
    session: &Session,
    file: Option<&Path>,
    notices: &mut Vec<String>,
) -> Policy {
    let policy = place.policy(file, Some(project)).and_then(|policy| policy.holds_for(Some(session.id())).map(|()| policy));
    policy.unwrap_or_else(|trouble| {
        notices.push(format!("{}\nuntil it is mended nothing is changed here: mode plan", trouble.message));
        place.mode = Mode::Plan;
        own
    })
}

fn head(place: &Place, policy: &Policy, model: &Result<Arc<dyn Model>, NoModel>, standing: &Standing) -> (Header, ModelAccess) {
    let enforcer = place.enforcer(policy, standing.sandbox(), place.mode);
    let access = match model {
        Ok(_) => ModelAccess::Ready,
        Err(error) => ModelAccess::NoKey { message: error.to_string() },
    };
    let model = model.as_ref().ok();
    let header = Header {
        branch: place.branch(),
        model: model.map_or_else(String::new, |model| model.name().to_owned()),
        context_tokens: model.map(|model| model.facts().context_window),
        effort: place.settings.effort.map(|set| set.effort),
        mode: place.mode,
        policy: policy.name.clone(),
        sandbox: standing.holding(&enforcer).status(),
    };
    (header, access)
}

/// The person went without an answer: nothing is begun, and what they wrote last is kept.
async fn leave(session: &Session, place: &Place, mut commands: mpsc::Receiver<Command>) {
    let mut kept = None;
    while let Some(command) = commands.recv().await {
        if let Command::Prompt { text } | Command::SaveDraft { text } = command {
            kept = Some(text).filter(|text| !text.is_empty()).or(kept);
        }
    }
    if let Some(text) = kept
        && let Err(error) = crate::ports::Journal::save_draft(&*session.store.journal(session.id(), place.mode), text).await
    {
        tracing::warn!(%error, "draft");
    }
}

/// Without a model there is nothing to do; the screen says so and keeps what is typed.
async fn wait_for_the_end(mut commands: mpsc::Receiver<Command>) {
    while commands.recv().await.is_some() {}
}
