//! A table that fits the width there is: columns give way in a stated order, the last one is cut.

use crate::style::{Style, Tone};
use crate::text::{self, cut};
use telltale_schema::quantity;

/// Which side of its column a text leans to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// Which side its texts lean to.
    pub side: Alignment,
    /// When the width is short, columns go in descending order of this; 0 never goes.
    pub gives_way: u8,
    /// Whether it is worth nothing when cut, as the last column.
    pub is_whole: bool,
}

impl Column {
    /// A column of names.
    pub const fn left(title: &'static str, gives_way: u8) -> Self {
        Self { title, side: Alignment::Left, gives_way, is_whole: false }
    }

    /// A column of numbers.
    pub const fn right(title: &'static str, gives_way: u8) -> Self {
        Self { title, side: Alignment::Right, gives_way, is_whole: false }
    }

    /// The same column, which is not cut: before that others give way.
    pub const fn whole(self) -> Self {
        Self { is_whole: true, ..self }
    }
}

/// One cell: a text and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Ordinary text, which holds nothing unprintable.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }

    /// Text of a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    /// An amount of memory, where it is known.
    pub fn bytes(bytes: Option<u64>) -> Self {
        bytes.map_or_else(Self::absent, |bytes| Self::new(quantity::bytes(bytes)))
    }

    /// A count, where it is known.
    pub fn count(count: Option<u64>) -> Self {
        count.map_or_else(Self::absent, |count| Self::new(quantity::count(count)))
    }

    /// What it says, without its tone.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What stands where there is no value. The reason is in the details.
    pub fn absent() -> Self {
        Self::toned("n/a", Tone::Faint)
    }
}

/// Rows under headings.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

const GAP: usize = 2;

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row, one cell for each column.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "one cell for each column");
        self.rows.push(row);
    }

    /// The table as text, a line feed after each line.
    pub fn render(&self, style: &Style) -> String {
        let widths = self.widths();
        let shown = self.columns_that_fit(&widths, style.width);
        let headings = self
            .columns
            .iter()
            .map(|column| Cell::toned(column.title, Tone::Heading))
            .collect::<Vec<_>>();
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            self.render_row(row, &shown, &widths, style, &mut text);
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |index: usize, title: &str| {
            let cells = self.rows.iter().map(|row| text::width(&row[index].text));
            cells.chain([text::width(title)]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(|(index, column)| widest(index, column.title)).collect()
    }

    fn columns_that_fit(&self, widths: &[usize], limit: Option<usize>) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let Some(limit) = limit else { return shown };
        // The last column is cut rather than dropped, so it counts with its heading alone.
        let is_cut =
            |index: usize| index + 1 == self.columns.len() && !self.columns[index].is_whole;
        let needs = |shown: &[usize]| {
            let texts: usize = shown
                .iter()
                .map(|index| match is_cut(*index) {
                    true => widths[*index].min(text::width(self.columns[*index].title)),
                    false => widths[*index],
                })
                .sum();
            texts + GAP * shown.len().saturating_sub(1)
        };
        while needs(&shown) > limit {
            let candidate = (0..shown.len())
                .filter(|place| self.columns[shown[*place]].gives_way > 0)
                .max_by_key(|place| self.columns[shown[*place]].gives_way);
            let Some(place) = candidate else { break };
            shown.remove(place);
        }
        shown
    }

    fn render_row(
        &self,
        row: &[Cell],
        shown: &[usize],
        widths: &[usize],
        style: &Style,
        to: &mut String,
    ) {
        let mut used = 0;
        for (place, index) in shown.iter().enumerate() {
            let cell = &row[*index];
            let is_last = place + 1 == shown.len();
            let room = style.width.map_or(usize::MAX, |limit| limit.saturating_sub(used));
            let shown_text = cut(&cell.text, room, style);
            let padding = widths[*index].min(room).saturating_sub(text::width(&shown_text));
            let (before, after) = match self.columns[*index].side {
                Alignment::Right => (padding, 0),
                Alignment::Left if is_last => (0, 0),
                Alignment::Left => (0, padding),
            };
            to.push_str(&" ".repeat(before));
            to.push_str(&cell.tone.paint(&shown_text, style));
            to.push_str(&" ".repeat(after));
            used += widths[*index] + GAP;
            if !is_last {
                to.push_str(&" ".repeat(GAP));
            }
        }
        to.truncate(to.trim_end_matches(' ').len());
        to.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Column, Table};
    use crate::style::Style;

    fn sample() -> Table {
        let mut table = Table::new(vec![
            Column::left("ID", 0),
            Column::right("POWER", 2),
            Column::left("COMMAND", 1),
        ]);
        table.push(vec![Cell::new("251732099"), Cell::new("21 W"), Cell::new("python train.py")]);
        table.push(vec![Cell::new("訓練"), Cell::absent(), Cell::new("x")]);
        table
    }

    #[test]
    fn columns_line_up_and_give_way_in_order() {
        let render = |width| sample().render(&Style { width, color: false, unicode: true });
        assert_eq!(
            render(None),
            "ID         POWER  COMMAND\n251732099   21 W  python train.py\n訓練         n/a  x\n"
        );
        assert_eq!(
            render(Some(25)),
            "ID         POWER  COMMAND\n251732099   21 W  python…\n訓練         n/a  x\n"
        );
        assert_eq!(render(Some(20)), "ID         COMMAND\n251732099  python t…\n訓練       x\n");
        assert_eq!(render(Some(12)), "ID\n251732099\n訓練\n");
        assert_eq!(render(Some(5)), "ID\n2517…\n訓練\n");
        assert_eq!(render(Some(0)), "\n\n\n");
    }

    #[test]
    fn a_last_column_that_is_whole_makes_others_give_way() {
        let mut table = Table::new(vec![
            Column::left("ID", 0),
            Column::right("POWER", 2),
            Column::left("HELD BY", 1).whole(),
        ]);
        table.push(vec![Cell::new("0"), Cell::new("21 W"), Cell::new("4242 python3 +3")]);
        let render =
            |width| table.render(&Style { width: Some(width), color: false, unicode: true });
        assert_eq!(render(26), "ID  POWER  HELD BY\n0    21 W  4242 python3 +3\n");
        assert_eq!(render(25), "ID  HELD BY\n0   4242 python3 +3\n");
        assert_eq!(render(18), "ID\n0\n");
    }

    #[test]
    fn colour_changes_no_width() {
        let style = Style { width: Some(40), color: true, unicode: true };
        let painted = sample().render(&style);
        assert!(painted.contains("\x1b[2mn/a\x1b[0m"));
        let plain = sample().render(&Style { color: false, ..style });
        let mut stripped = painted;
        for code in ["\x1b[1m", "\x1b[2m", "\x1b[0m"] {
            stripped = stripped.replace(code, "");
        }
        assert_eq!(stripped, plain);
    }
}
