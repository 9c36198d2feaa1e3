//! What a terminal sends, in the view's own terms.

use ratatui_crossterm::crossterm::event::{
    Event as Sent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent,
    MouseEventKind,
};
use telltale_smi::screen::{Event, Key};

/// The event, if it means anything to the view. A change of the size is none: the frame has it.
pub(super) fn event(sent: &Sent) -> Option<Event> {
    match sent {
        Sent::Key(key) if key.kind != KeyEventKind::Release => key_of(key).map(Event::Key),
        Sent::Mouse(mouse) => pointed(mouse),
        _ => None,
    }
}

fn key_of(key: &KeyEvent) -> Option<Key> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(match key.code {
        KeyCode::Char(character) if control => Key::Control(character.to_ascii_lowercase()),
        KeyCode::Char(character) => Key::Char(character),
        KeyCode::F(number) => Key::Function(number),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

fn pointed(mouse: &MouseEvent) -> Option<Event> {
    let MouseEvent { column, row, .. } = *mouse;
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Event::Pressed { column, row }),
        MouseEventKind::ScrollUp => Some(Event::Wheel { up: true, row }),
        MouseEventKind::ScrollDown => Some(Event::Wheel { up: false, row }),
        _ => None,
    }
}
