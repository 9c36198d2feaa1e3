//! libtelltale_nrt as C and C++ programs meet it: installed, compiled against, run.

mod header;
mod installed;
mod programs;
