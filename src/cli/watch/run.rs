//! The loop: keys, signals, what was read, and each second that passes.

use std::time::Duration;

use claimdir::host::{Host, Os};
use claimdir::{Code, Error, Result};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::model::Board;
use super::reader::{Reader, Told};
use super::screen::{Heard, Screen, Stopped, size_of_output};
use super::state::{Act, Ui};
use super::view;

pub(crate) use super::reader::Source;
pub(crate) use super::screen::why_not;

/// Times that count down are drawn anew so often.
const TICK: Duration = Duration::from_secs(1);

/// Are colours wanted?
fn colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The board as lines of text, as large as standard output is.
pub(crate) fn frame(board: Board) -> Vec<String> {
    let (columns, rows) = size_of_output();
    let area = Rect::new(0, 0, columns, rows);
    let (mut buffer, mut ui) = (Buffer::empty(area), Ui::new(false));
    ui.is_still = true;
    ui.show(board);
    view::draw(&mut ui, &mut buffer, area);
    view::plain(&buffer)
}

/// Shows the board until somebody has seen enough.
pub(crate) fn run(source: Source) -> Result<()> {
    let failed = |e| Error::new(Code::StoreUnavailable, format!("cannot use the terminal: {e}"));
    let host = Os::new();
    // Signals are heard there before the reader starts.
    let mut screen = Screen::take().map_err(failed)?;
    let reader = Reader::start(source)?;
    let mut ui = Ui::new(colour());
    let stopped = shown(&mut screen, &reader, &mut ui, &host);
    drop(screen);
    match stopped {
        Ok(()) | Err(Stopped::Well) => Ok(()),
        Err(Stopped::Badly(e)) => Err(failed(e)),
    }
}

fn shown(
    screen: &mut Screen,
    reader: &Reader,
    ui: &mut Ui,
    host: &impl Host,
) -> std::result::Result<(), Stopped> {
    loop {
        let now_ms = host.now().mono_ms;
        ui.age_ms = ui.board.as_ref().map_or(0, |board| now_ms.saturating_sub(board.at.mono_ms));
        screen.draw(ui)?;
        let Heard { keys, suspend } = screen.wait(reader.descriptor(), TICK)?;
        reader.told().map_err(Stopped::Badly)?.into_iter().for_each(|told| tell(ui, told));
        if suspend {
            screen.suspend()?;
        }
        for key in keys {
            match ui.press(key) {
                Act::Nothing => {}
                Act::Quit => return Ok(()),
                Act::Suspend => screen.suspend()?,
                Act::ReadNow => reader.read_now(),
                Act::LookInto(id) => reader.look_into(id),
                Act::LookAway => reader.look_away(),
                Act::Redraw => screen.forget(),
            }
        }
    }
}

fn tell(ui: &mut Ui, told: Told) {
    match told {
        Told::Board(board) => ui.show(*board),
        Told::Detail(detail) => ui.show_inside(detail),
        Told::Trouble(says) => ui.trouble = Some(says),
        Told::Gone(says) => {
            ui.board = None;
            ui.trouble = Some(says);
        }
    }
}
