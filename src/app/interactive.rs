//! The screen and the session behind it.

use super::cli::{Color, Common, Nesting, SessionChoice, Trust as TrustFlag};
use super::exit::Exit;
use super::pick;
use super::place::{Place, Policy};
use super::rules::PersonsRules;
use super::session::{self, Session, Terms};
use super::trouble::Trouble;
use crate::agent::{self, Approver, Unfinished};
use crate::config::trust::{Project, Standing, Trusted};
use crate::config::{InstructionFile, NoModel};
use crate::ports::Model;
use crate::protocol::{Command, Event, EventKind};
use crate::tui::{self, Colours, Ended, Front, Ground, Header, ModelAccess, Options, Outcome, Start, ThemeChoice, Trust};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long the session may take to save itself when the screen is gone.
const FAREWELL: Duration = Duration::from_secs(5);

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
    let policy = place.policy(common.policy.as_deref())?;
    let _log = super::start_log(&place, common.verbosity);
    let runtime = super::runtime()?;
    runtime.block_on(async {
        let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
        let (events, receive_events) = mpsc::unbounded_channel();
        let (start, receive_start) = oneshot::channel();
        let store = super::open_store(&place)?;
        let choice = pick::ask(&store, &place, request.session)?;
        let chosen = session::choose(&store, &mut place, &choice)?;
        // The session may bring its own workspace along, and what the person allowed there.
        let policy = if chosen.is_some() { place.policy(common.policy.as_deref())? } else { policy };
        let model = session::choose_model(&place, common.model.as_deref(), chosen.as_ref());
        if let Err(NoModel::Wrong(error)) = model {
            return Err(error.into());
        }
        let name = model.as_ref().map_or_else(|_| String::new(), |model| model.name().to_owned());
        let mut session = session::open(store, &place, &policy, chosen, &name)?;
        // The screen hides what was said before it.
        let said = session.store.notices().to_vec();
        session.notices.splice(0..0, said);
        let front = Front {
            commands,
            events: receive_events,
            options: options(&place, common.color),
            prompt: request.prompt,
            start: receive_start,
        };
        let rules = Arc::new(PersonsRules::new(&place, common.policy.as_deref()));
        let backstage = Backstage { place, policy, session, model, rules, trust: common.trust, max_steps: common.max_steps };
        let session = tokio::spawn(backstage.run(start, receive_commands, events));
        let outcome = tui::run(front).await.map_err(|error| Trouble::failed(format!("the terminal failed: {error}")))?;
        // The screen's end dropped its sender of commands, so the session saves itself and ends.
        let _ = tokio::time::timeout(FAREWELL, session).await;
        Ok(farewell(&outcome))
    })
}

/// Says on the main screen what the other one ended with.
fn farewell(outcome: &Outcome) -> Exit {
    let mut text = String::new();
    if let Some(answer) = &outcome.last_answer {
        text.push_str(&crate::text::clean(answer.trim_end()));
        text.push('\n');
    }
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

fn options(place: &Place, color: Color) -> Options {
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
    rules: Arc<PersonsRules>,
    trust: TrustFlag,
    max_steps: Option<u32>,
}

impl Backstage {
    async fn run(self, start: oneshot::Sender<Start>, commands: mpsc::Receiver<Command>, events: mpsc::UnboundedSender<Event>) {
        let Self { place, policy, mut session, model, rules, trust, max_steps } = self;
        let project = Project::examine(&place.workspace);
        let standing = session::standing(&project, &place, trust);
        let (answer, receive_answer) = oneshot::channel();
        let asks = project.brings().next().is_some() && !matches!(standing, Standing::Trusted(_)) && model.is_ok();
        // A program that aye runs could press the key itself.
        let asks = asks && Nesting::of_process() == Nesting::Outermost;
        let files = project.brings().map(|path| path.display().to_string()).collect();
        let history = session.history(&place);
        let (header, model_access) = head(&place, &policy, &model);
        let trust = asks.then_some(Trust { files, answer });
        if start.send(Start { header, history, model_access, trust }).is_err() {
            return;
        }
        let Ok(model) = model else { return wait_for_the_end(commands).await };
        let said_yes = asks && receive_answer.await == Ok(true);
        let proof = match standing {
            Standing::Trusted(proof) => Some(proof),
            Standing::Changed | Standing::NeverAsked if said_yes => {
                project.record(&place.directories.config).ok().or_else(|| Some(Trusted::for_this_run()))
            }
            Standing::Changed | Standing::NeverAsked => None,
        };
        let instructions: Vec<InstructionFile> = proof.map_or_else(Vec::new, |proof| project.instructions(&proof).to_vec());
        let draft = std::mem::take(&mut session.draft);
        let notices = std::mem::take(&mut session.notices);
        let terms = Terms { approver: Approver::Person, unfinished: Unfinished::Wait, max_steps, instructions, rules };
        let setup = session::setup(&place, &policy, &mut session, model, terms);
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
        let ended: JoinHandle<()> = agent::spawn(setup, commands, events);
        let _ = ended.await;
        // The claim on the session is given back only now.
        drop(session);
    }
}

fn head(place: &Place, policy: &Policy, model: &Result<Arc<dyn Model>, NoModel>) -> (Header, ModelAccess) {
    let access = match model {
        Ok(_) => ModelAccess::Ready,
        Err(error) => ModelAccess::NoKey { message: error.to_string() },
    };
    let model = model.as_ref().ok();
    let header = Header {
        branch: place.branch(),
        model: model.map_or_else(String::new, |model| model.name().to_owned()),
        context_tokens: model.map(|model| model.context_window()),
        mode: place.mode,
        policy: policy.name.clone(),
        sandbox: "sandbox none".to_owned(),
    };
    (header, access)
}

/// Without a model there is nothing to do; the screen says so and keeps what is typed.
async fn wait_for_the_end(mut commands: mpsc::Receiver<Command>) {
    while commands.recv().await.is_some() {}
}
