//! `coretide top`: the picture of `broker::top`, drawn anew every second, or printed once.

use std::io::{IsTerminal, Read, Write, stdout};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use crossterm::style::Print;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

use crate::top::{Page, View, draw};

/// Shows cores, groups and topics as they are now.
///
/// Reads the metrics of the hosts' admin ports; needs no more than 80 columns. Ends with q.
/// BUSY is the part of the time that a core had work, MEM of its budget in use; PROD99, FETCH99
/// (without the wait for records), COMMIT99 and DELAY99 (of the core's loop) are 99th percentiles
/// of the last interval. AGE is how old the oldest record is that a group has not consumed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  coretide top
  coretide top --admin broker-1:9644,broker-2:9644
  coretide top --once --json | jq '.groups[] | select(.lag_seconds > 60)'")]
pub struct TopArgs {
    /// Admin ports to look at
    #[arg(long, value_name = "HOST:PORT", env = "CORETIDE_ADMIN", value_delimiter = ',')]
    #[arg(default_value = "127.0.0.1:9644")]
    admin: Vec<String>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Print one picture, of the next interval, and end
    #[arg(long)]
    once: bool,
    /// Print JSON for scripts, one object for each interval
    #[arg(long)]
    json: bool,
}

/// One look at all hosts; of some perhaps only why it failed.
struct Look {
    pages: Vec<anyhow::Result<Page>>,
    at: Instant,
}

impl Look {
    /// What keeps hosts out of the picture, if anything does.
    fn trouble(&self) -> Option<String> {
        let whys = self.pages.iter().filter_map(|it| it.as_ref().err());
        let whys: Vec<String> = whys.map(|why| format!("{why:#}")).collect();
        (!whys.is_empty()).then(|| whys.join("; "))
    }

    /// An error when no host could be looked at.
    fn or_nothing(self) -> anyhow::Result<Look> {
        match self.trouble() {
            Some(why) if self.pages.iter().all(Result::is_err) => bail!("{why}"),
            _ => Ok(self),
        }
    }
}

pub(super) fn run(args: TopArgs) -> anyhow::Result<()> {
    if !(0.1..=3600.0).contains(&args.interval) {
        bail!("--interval {}: choose 0.1 to 3600 seconds", args.interval);
    }
    let live = !args.once && !args.json && stdout().is_terminal();
    let mut before = look(&args.admin).or_nothing()?;
    if live {
        return show(&args, before);
    }
    loop {
        std::thread::sleep(Duration::from_secs_f64(args.interval));
        let after = look(&args.admin).or_nothing()?;
        let view = view(&before, &after);
        if let Some(why) = after.trouble() {
            eprintln!("coretide: left out: {why}");
        }
        if args.json {
            println!("{}", view.as_json());
        } else {
            let columns = size().map_or(COLUMNS, |it| usize::from(it.0));
            println!("{}", draw(&view, &title(&args), columns, ROWS_PRINTED).join("\n"));
        }
        stdout().flush()?;
        if args.once {
            return Ok(());
        }
        before = after;
    }
}

fn view(before: &Look, after: &Look) -> View {
    let both = |(before, after): (&anyhow::Result<Page>, &anyhow::Result<Page>)| {
        Some((before.as_ref().ok()?.clone(), after.as_ref().ok()?.clone()))
    };
    let hosts: Vec<_> = before.pages.iter().zip(&after.pages).map(both).collect();
    View::between(&hosts, after.at - before.at)
}

fn title(args: &TopArgs) -> String {
    format!("coretide top  {}  every {} s  q ends", args.admin.join(" "), args.interval)
}

/// The terminal while it is ours; given back in any case.
struct Screen;

impl Screen {
    fn take() -> anyhow::Result<Screen> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(Screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing better can be done for a terminal that takes no commands.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

fn show(args: &TopArgs, mut before: Look) -> anyhow::Result<()> {
    let _screen = Screen::take()?;
    let mut shown = View::default();
    let mut trouble = None;
    loop {
        picture(args, &shown, trouble.as_deref())?;
        let due = Instant::now() + Duration::from_secs_f64(args.interval);
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            if !poll(left)? {
                break;
            }
            match read()? {
                Event::Key(key) if is_end(key.code, key.modifiers) => return Ok(()),
                Event::Resize(..) => picture(args, &shown, trouble.as_deref())?,
                _ => {}
            }
        }
        // A host that restarts is waited for, and the others are shown meanwhile.
        let after = look(&args.admin);
        trouble = after.trouble().map(|why| format!("left out: {why}"));
        shown = view(&before, &after);
        before = after;
    }
}

fn is_end(code: KeyCode, modifiers: KeyModifiers) -> bool {
    let control = modifiers.contains(KeyModifiers::CONTROL);
    matches!(code, KeyCode::Char('q') | KeyCode::Esc) || (control && code == KeyCode::Char('c'))
}

fn picture(args: &TopArgs, view: &View, trouble: Option<&str>) -> anyhow::Result<()> {
    let (columns, rows) = size().unwrap_or((COLUMNS as u16, 24));
    let title = trouble.map_or_else(|| title(args), str::to_owned);
    let mut out = stdout().lock();
    let lines = draw(view, &title, columns.into(), rows.into());
    for (row, line) in (0..).zip(&lines) {
        queue!(out, MoveTo(0, row), Print(line))?;
        // Behind a full line, terminals would clear its last letter.
        if line.chars().count() < usize::from(columns) {
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
    }
    if lines.len() < usize::from(rows) {
        queue!(out, MoveTo(0, lines.len() as u16), Clear(ClearType::FromCursorDown))?;
    }
    Ok(out.flush()?)
}

/// At all hosts at the same time: one that does not answer holds up no other.
fn look(admin: &[String]) -> Look {
    let page = |address: &str| {
        let text = get(address).with_context(|| format!("the metrics of {address}"))?;
        Ok(Page::parse(&text)?)
    };
    let at = Instant::now();
    let pages = std::thread::scope(|scope| {
        let looks: Vec<_> = admin.iter().map(|it| scope.spawn(move || page(it))).collect();
        let joined = looks.into_iter().map(|it| match it.join() {
            Ok(page) => page,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    Look { pages, at }
}

/// `GET /metrics`, of a server that closes the connection behind its answer.
fn get(address: &str) -> anyhow::Result<String> {
    let target = address.to_socket_addrs()?.next().context("no such address")?;
    let mut stream = TcpStream::connect_timeout(&target, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        bail!("{status}: {}", body.trim());
    }
    Ok(body.to_owned())
}

const TIMEOUT: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: u64 = 1 << 30;
const COLUMNS: usize = 80;
const ROWS_PRINTED: usize = 1000;
