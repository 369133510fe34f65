#include <iostream>

#include "controller/cli/commands.h"

int main(int argc, char** argv) {
  return verger::cli::run_verger(argc, argv, std::cout, std::cerr);
}
