# The Debian packages, one component each: `./dev package` makes them from what `./dev build` built.
# Why: docs/decisions/0035-packages.md. The version is that of project().
set(made ${CMAKE_BINARY_DIR}/package)
set(packaging ${PROJECT_SOURCE_DIR}/packaging)
set(systemd_units /lib/systemd/system)  # where Debian 12 has them

add_custom_target(package_files
  COMMAND ${packaging}/make_files.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${made}
  DEPENDS vergerd verger-agent verger-redact verger verger-db
  VERBATIM)

# --- verger-controller ---
install(TARGETS vergerd RUNTIME DESTINATION bin COMPONENT controller)
install(FILES ${made}/vergerd.yaml DESTINATION /etc/verger COMPONENT controller)
install(FILES ${PROJECT_SOURCE_DIR}/examples/systemd/vergerd.service
  DESTINATION ${systemd_units} COMPONENT controller)
install(FILES ${packaging}/controller/sysusers.conf DESTINATION lib/sysusers.d
  RENAME verger-controller.conf COMPONENT controller)
install(FILES ${packaging}/controller/tmpfiles.conf DESTINATION lib/tmpfiles.d
  RENAME verger-controller.conf COMPONENT controller)
install(DIRECTORY ${made}/man8-controller/ DESTINATION share/man/man8 COMPONENT controller)
# Alert rules, dashboards and policies are read by other programs and by `verger policy apply`.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/prometheus DESTINATION share/verger
  COMPONENT controller PATTERN "*.test.yml" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/grafana DESTINATION share/verger
  COMPONENT controller OPTIONAL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/policies DESTINATION share/verger COMPONENT controller)
install(FILES ${PROJECT_SOURCE_DIR}/examples/vergerd.yaml
  DESTINATION share/doc/verger-controller/examples COMPONENT controller)

# --- verger-agent ---
install(TARGETS verger-agent verger-redact RUNTIME DESTINATION bin COMPONENT agent)
install(FILES ${made}/verger-agent.yaml DESTINATION /etc/verger COMPONENT agent)
install(FILES ${PROJECT_SOURCE_DIR}/examples/systemd/verger-agent.service
  DESTINATION ${systemd_units} COMPONENT agent)
install(FILES ${packaging}/agent/sysusers.conf DESTINATION lib/sysusers.d
  RENAME verger-agent.conf COMPONENT agent)
install(FILES ${packaging}/agent/tmpfiles.conf DESTINATION lib/tmpfiles.d
  RENAME verger-agent.conf COMPONENT agent)
install(DIRECTORY ${made}/man8-agent/ DESTINATION share/man/man8 COMPONENT agent)
install(FILES ${PROJECT_SOURCE_DIR}/examples/verger-agent.yaml
  ${PROJECT_SOURCE_DIR}/examples/verger-agent-server.yaml
  ${PROJECT_SOURCE_DIR}/examples/systemd/verger-agent-user.conf
  ${PROJECT_SOURCE_DIR}/examples/systemd/server-kept-stopped.conf
  DESTINATION share/doc/verger-agent/examples COMPONENT agent)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/snapshots
  DESTINATION share/doc/verger-agent/examples COMPONENT agent USE_SOURCE_PERMISSIONS)

# --- verger-cli ---
install(TARGETS verger verger-db RUNTIME DESTINATION bin COMPONENT cli)
install(DIRECTORY ${made}/man1-cli/ DESTINATION share/man/man1 COMPONENT cli)
install(FILES ${made}/completion/verger DESTINATION share/bash-completion/completions
  COMPONENT cli)
install(FILES ${made}/completion/_verger DESTINATION share/zsh/vendor-completions COMPONENT cli)
install(FILES ${made}/completion/verger.fish DESTINATION share/fish/vendor_completions.d
  COMPONENT cli)

foreach(component controller agent cli)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/verger-${component}
    RENAME copyright COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME verger)
set(CPACK_PACKAGE_VENDOR Verger)
set(CPACK_PACKAGE_CONTACT "Verger maintainers <maintainers@verger.invalid>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # so that /etc and /lib are those of the package
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL controller agent cli)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
foreach(component controller agent cli)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME verger-${component})
endforeach()
set(CPACK_DEBIAN_CONTROLLER_PACKAGE_DEPENDS "systemd, procps, ca-certificates, tzdata")
set(CPACK_DEBIAN_CONTROLLER_PACKAGE_RECOMMENDS verger-cli)
set(CPACK_DEBIAN_AGENT_PACKAGE_DEPENDS "systemd, procps, ca-certificates")
set(CPACK_COMPONENT_CONTROLLER_DESCRIPTION
  "Maintenance of EventStoreDB and KurrentDB clusters: the controller\nvergerd observes clusters, plans maintenance, executes it and keeps a journal of it.")
set(CPACK_COMPONENT_AGENT_DESCRIPTION
  "Maintenance of EventStoreDB and KurrentDB clusters: the agent\nverger-agent works beside each server on behalf of vergerd.")
set(CPACK_COMPONENT_CLI_DESCRIPTION
  "Maintenance of EventStoreDB and KurrentDB clusters: the command lines\nverger is the command line of vergerd; verger-db inspects, verifies, backs up and scavenges the\ndatabase directory of a stopped server.")
foreach(component controller agent)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${packaging}/${component}/postinst
    ${packaging}/${component}/prerm ${packaging}/${component}/postrm
    ${packaging}/${component}/conffiles)
endforeach()
include(CPack)
