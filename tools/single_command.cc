// A program of one command, the one that the build calls MERIDIAN_COMMAND.
#include "tools/command.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  return meridian::RunCommand(meridian::MERIDIAN_COMMAND(), argc, argv);
}
